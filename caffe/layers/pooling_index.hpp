// Where in its window each output of a pooling layer was found, kept from forward to backward: in
// ceil(log2(kernel_h kernel_w)) bits an output, plane after plane, for each slice of the batch.
#pragma once

#include <omp.h>

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
  // Room for the codes of so many planes, to be filled with put().
  uint8_t* make(int64_t planes, const BatchSlice& slice) {
    auto& block = kept_[slice];
    block = Arena::instance().allocate(static_cast<size_t>(planes) * plane_bytes(),
                                       MemoryKind::StoredActivations);
    return reinterpret_cast<uint8_t*>(block->data());
  }
  void put(const int32_t* codes, uint8_t* room, int64_t plane) const {
    pack_codes(codes, out_size_, bits_, room + static_cast<size_t>(plane) * plane_bytes());
  }
  // body(plane, its codes), in parallel. Throws Error where nothing was kept.
  template <typename Body>
  void for_each_plane(int64_t planes, const BatchSlice& slice, const Body& body) {
    const std::shared_ptr<Block>& block = kept_[slice];
    if (!block) {
      throw Error(
          "backward needs the index of a forward pass that saved it; STOCHASTIC has none in TEST");
    }
    const auto* index = reinterpret_cast<const uint8_t*>(block->data());
    const ThreadScratch<int32_t> scratch(out_size_);
    parallel_for(planes, kParallelGrain / (out_size_ + 1) + 1, [&](int64_t begin, int64_t end) {
      int32_t* codes = scratch.mine();
      for (int64_t i = begin; i < end; ++i) {
        unpack_codes(index + static_cast<size_t>(i) * plane_bytes(), out_size_, bits_, codes);
        body(i, codes);
      }
    });
  }
  size_t bytes() const {
    size_t bytes = 0;
    for (const auto& block : kept_.all()) bytes += block ? block->bytes() : 0;
    return bytes;
  }
  void clear() { kept_.clear(); }

 private:
  size_t plane_bytes() const { return packed_bytes(out_size_, bits_); }

  int64_t out_size_ = 0;
  int bits_ = 0;  // of one code
  PerSlice<std::shared_ptr<Block>> kept_;
};

}  // namespace caffe
