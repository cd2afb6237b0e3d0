// LRN, local response normalisation. Bottom and top N x C x H x W.
//   y = x s^-beta
//   ACROSS_CHANNELS: s = k + alpha / n * sum of x^2 over the n channels around, at one pixel
//   WITHIN_CHANNEL:  s = 1 + alpha / n^2 * sum of x^2 over the n x n pixels around, in one channel
//   dx = dy s^-beta - 2 beta (alpha / n or n^2) x * sum of (dy x s^(-beta-1)) over the same window
// Beyond the edges x is 0. Sums slide in double: a large value that leaves the window leaves no
// error.
// Backward reads: x, from which it computes s again.
#pragma once

#include "caffe/layers/layer.hpp"

namespace caffe {

enum class NormRegion : uint8_t { AcrossChannels, WithinChannel };

struct LRNOptions {
  int64_t local_size = 5;  // n, odd
  float alpha = 1;
  float beta = 0.75f;
  NormRegion region = NormRegion::AcrossChannels;
  float k = 1;
};

class LRNLayer : public Layer {
 public:
  explicit LRNLayer(const LRNOptions& options) : options_(options) {}

  std::vector<Shape> reshape(const std::vector<Shape>& bottoms) override;
  Needs needs(const Propagation& propagation) const override;
  Traits traits() const override;
  void forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) override;
  void backward(const BackwardArguments& arguments) override;

 private:
  // Calls body(tile, offset of its first value, the thread's scratch) for each tile of `src`.
  template <typename Body>
  void for_each_tile(const Tensor& src, size_t scratch_doubles, const Body& body) const;

  LRNOptions options_;
  // The bottom seen as tiles of rows that the window slides over: channels at up to kTileWidth
  // pixels of one image, or the rows of one plane.
  int64_t rows_ = 0;    // C, or H
  int64_t stride_ = 0;  // values from row to row
  int64_t width_ = 0;   // of a tile
};

}  // namespace caffe
