#include "caffe/layers/lrn.hpp"

#include <omp.h>

#include <algorithm>

#include "caffe/core/parallel.hpp"
#include "caffe/layers/lrn_kernels.hpp"

namespace caffe {
namespace {

// Pixels in a tile of channels: the rows of the window stay in the first-level cache.
constexpr int64_t kTileWidth = 128;

}  // namespace

std::vector<Shape> LRNLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& src = bottoms[0];
  require(src.size() == 4, "bottom 0 is ", shape_string(src),
          ", needs 4 axes: batch, channels, height and width");
  require(options_.local_size > 0 && options_.local_size % 2 == 1, "local_size is ",
          options_.local_size, ", needs to be odd");
  if (options_.region == NormRegion::AcrossChannels) {
    rows_ = src[1];
    stride_ = src[2] * src[3];
    width_ = std::min(stride_, kTileWidth);
  } else {
    rows_ = src[2];
    stride_ = width_ = src[3];
  }
  return {src};
}

Needs LRNLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(1, 1);
  if (propagation.bottoms[0]) needs.bottoms[0] = {Quality::Bounded, BoundRule::Propagated};
  return needs;
}

Traits LRNLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = true;
  return traits;
}

template <typename Body>
void LRNLayer::for_each_tile(const Tensor& src, size_t scratch_doubles, const Body& body) const {
  if (src.count() == 0) return;
  const int64_t tables = src.count() / (rows_ * stride_);
  const auto scratch = Arena::instance().allocate(
      scratch_doubles * sizeof(double) * omp_get_max_threads(), MemoryKind::Workspace);
  const int64_t tiles_across = (stride_ + width_ - 1) / width_;
  const int64_t grain = kParallelGrain / (rows_ * width_) + 1;
  parallel_for(tables * tiles_across, grain, [&](int64_t begin, int64_t end) {
    auto* mine =
        reinterpret_cast<double*>(scratch->data()) + scratch_doubles * omp_get_thread_num();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % tiles_across * width_;
      LRNTile tile = {};
      tile.rows = rows_;
      tile.stride = stride_;
      tile.width = std::min(width_, stride_ - first);
      tile.reach = (options_.local_size - 1) / 2;
      tile.beta = options_.beta;
      const float size = static_cast<float>(options_.local_size);
      if (options_.region == NormRegion::AcrossChannels) {
        tile.base = options_.k;
        tile.factor = options_.alpha / size;
      } else {
        tile.reach_beside = tile.reach;
        tile.base = 1;
        tile.factor = options_.alpha / (size * size);
      }
      body(tile, i / tiles_across * rows_ * stride_ + first, mine);
    }
  });
}

void LRNLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext&) {
  const float* x = src[0].data();
  float* y = dst[0].data();
  for_each_tile(src[0], lrn_forward_scratch(width_),
                [=](const LRNTile& tile, int64_t offset, double* scratch) {
                  lrn_forward(tile, x + offset, y + offset, scratch);
                });
}

void LRNLayer::backward(const BackwardArguments& arguments) {
  if (!arguments.diff_src[0].defined()) return;
  const float* x = arguments.src[0].data();
  const float* dy = arguments.diff_dst[0].data();
  float* dx = arguments.diff_src[0].data();
  for_each_tile(arguments.src[0], lrn_backward_scratch(rows_, width_),
                [=](const LRNTile& tile, int64_t offset, double* scratch) {
                  lrn_backward(tile, x + offset, dy + offset, dx + offset, scratch);
                });
}

}  // namespace caffe
