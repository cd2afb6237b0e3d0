// Where in its window each output of a pooling layer was found, kept from forward to backward: in
// ceil(log2(kernel_h kernel_w)) bits an output, plane after plane. It is filled in the slices that
// forward takes and read in any.
#pragma once

#include <omp.h>

#include <algorithm>
#include <vector>

#include "caffe/core/arena.hpp"
#include "caffe/core/packed_codes.hpp"
#include "caffe/core/parallel.hpp"
#include "caffe/layers/layer.hpp"

namespace caffe {

// Scratch of `count` values of 4 bytes for each thread.
template <typename Value>
class ThreadScratch {
 public:
  explicit ThreadScratch(int64_t count)
      : count_(count),
        block_(Arena::instance().allocate(
            static_cast<size_t>(count * omp_get_max_threads()) * sizeof(Value),
            MemoryKind::Workspace)) {}
  Value* mine() const {
    return reinterpret_cast<Value*>(block_->data()) + count_ * omp_get_thread_num();
  }

 private:
  int64_t count_;
  std::shared_ptr<Block> block_;
};

class PoolIndex {
 public:
  // Outputs of a plane, and places in a window.
  void set(int64_t out_size, int64_t window) {
    out_size_ = out_size;
    bits_ = bits_for(window);
  }
  // Room for the codes of planes [first, first + planes) of the batch, to be filled with put().
  uint8_t* make(int64_t first, int64_t planes) {
    kept_.push_back({first, first + planes,
                     Arena::instance().allocate(static_cast<size_t>(planes) * plane_bytes(),
                                                MemoryKind::StoredActivations)});
    return reinterpret_cast<uint8_t*>(kept_.back().block->data());
  }
  void put(const int32_t* codes, uint8_t* room, int64_t plane) const {
    pack_codes(codes, out_size_, bits_, room + static_cast<size_t>(plane) * plane_bytes());
  }
  // body(i, codes of plane first + i) for i in [0, planes), in parallel. Throws Error where some were
  // not kept.
  template <typename Body>
  void for_each_plane(int64_t first, int64_t planes, const Body& body) const {
    int64_t kept = 0;
    for (const Piece& piece : kept_) kept += std::max<int64_t>(0, overlap(piece, first, planes));
    if (kept != planes) {
      throw Error(
          "backward needs the index of a forward pass that saved it; STOCHASTIC has none in TEST");
    }
    const ThreadScratch<int32_t> scratch(out_size_);
    const int64_t grain = kParallelGrain / (out_size_ + 1) + 1;
    for (const Piece& piece : kept_) {
      const int64_t count = overlap(piece, first, planes);
      if (count <= 0) continue;
      const auto* index = reinterpret_cast<const uint8_t*>(piece.block->data());
      const int64_t start = std::max(piece.first, first);
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        int32_t* codes = scratch.mine();
        for (int64_t plane = start + begin; plane < start + end; ++plane) {
          const auto at = static_cast<size_t>(plane - piece.first) * plane_bytes();
          unpack_codes(index + at, out_size_, bits_, codes);
          body(plane - first, codes);
        }
      });
    }
  }
  size_t bytes() const {
    size_t bytes = 0;
    for (const Piece& piece : kept_) bytes += piece.block->bytes();
    return bytes;
  }
  void clear() { kept_.clear(); }

 private:
  struct Piece {
    int64_t first, end;  // planes of the batch
    std::shared_ptr<Block> block;
  };

  static int64_t overlap(const Piece& piece, int64_t first, int64_t planes) {
    return std::min(piece.end, first + planes) - std::max(piece.first, first);
  }
  size_t plane_bytes() const { return packed_bytes(out_size_, bits_); }

  int64_t out_size_ = 0;
  int bits_ = 0;  // of one code
  std::vector<Piece> kept_;
};

}  // namespace caffe
