#include "caffe/layers/eltwise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "caffe/core/packed_codes.hpp"
#include "caffe/core/parallel.hpp"

namespace caffe {
namespace {

// Elements worked on at a time, a multiple of the 64 in a mask's word. All bottoms' values of a
// chunk are read before the chunk is written, so tops and bottoms may share buffers.
constexpr int64_t kChunk = 1024;

// Calls body(first, length) for chunks of [0, count).
template <typename Body>
void for_each_chunk(int64_t count, const Body& body) {
  parallel_for((count + kChunk - 1) / kChunk, kParallelGrain / kChunk,
               [&](int64_t begin, int64_t end) {
                 for (int64_t chunk = begin; chunk < end; ++chunk) {
                   const int64_t first = chunk * kChunk;
                   body(first, std::min(kChunk, count - first));
                 }
               });
}

void copy_chunk(const float* from, float* to, int64_t length) {
  std::memcpy(to, from, static_cast<size_t>(length) * sizeof(float));
}

}  // namespace

EltwiseLayer::EltwiseLayer(const EltwiseOptions& options) : options_(options) {
  require(options.coeff.empty() || options.operation != EltwiseOperation::Product,
          "coeff is for SUM, the operation is PROD");
}

std::vector<Shape> EltwiseLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 2, 256);
  require(options_.coeff.empty() || options_.coeff.size() == bottoms.size(), "has ",
          options_.coeff.size(), " values of coeff, needs one for each of ", bottoms.size(),
          " bottoms");
  for (size_t k = 1; k < bottoms.size(); ++k) {
    require(bottoms[k] == bottoms[0], "bottom ", k, " is ", shape_string(bottoms[k]),
            ", needs the shape of bottom 0, ", shape_string(bottoms[0]));
  }
  bottoms_ = bottoms.size();
  return {bottoms[0]};
}

Needs EltwiseLayer::needs(const Propagation& propagation) const {
  Needs needs = no_needs(propagation.bottoms.size(), 1);
  if (options_.operation != EltwiseOperation::Product) return needs;
  const auto& wanted = propagation.bottoms;
  const auto gradients = std::count(wanted.begin(), wanted.end(), true);
  for (size_t j = 0; j < wanted.size(); ++j) {
    const bool multiplies = gradients > (wanted[j] ? 1 : 0);  // some dx_k with k != j is wanted
    if (multiplies) needs.bottoms[j] = {Quality::Bounded, BoundRule::Propagated};
  }
  return needs;
}

Traits EltwiseLayer::traits() const {
  Traits traits;
  traits.cheap = true;
  traits.forward_in_place = true;
  traits.backward_in_place = true;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = options_.operation != EltwiseOperation::Maximum;
  if (options_.operation == EltwiseOperation::Sum) {
    traits.error_factor = 0;  // of equal errors in all bottoms
    for (size_t k = 0; k < bottoms_; ++k) traits.error_factor += std::abs(coeff(k));
  } else if (options_.operation == EltwiseOperation::Product) {
    traits.error_factor = std::numeric_limits<float>::infinity();
  }
  return traits;
}

float EltwiseLayer::coeff(size_t bottom) const {
  return options_.coeff.empty() ? 1.0f : options_.coeff[bottom];
}

void EltwiseLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (options_.operation == EltwiseOperation::Maximum) {
    take_maximum(src, dst[0], context.save_for_backward);
    return;
  }
  float* y = dst[0].data();
  for_each_chunk(dst[0].count(), [&](int64_t first, int64_t length) {
    float result[kChunk];
    const float* x0 = src[0].data() + first;
    const float factor0 = coeff(0);
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) result[i] = factor0 * x0[i];
    for (size_t k = 1; k < src.size(); ++k) {
      const float* x = src[k].data() + first;
      const float factor = coeff(k);
      if (options_.operation == EltwiseOperation::Sum) {
#pragma omp simd
        for (int64_t i = 0; i < length; ++i) result[i] += factor * x[i];
      } else {
#pragma omp simd
        for (int64_t i = 0; i < length; ++i) result[i] *= x[i];
      }
    }
    copy_chunk(result, y + first, length);
  });
}

void EltwiseLayer::take_maximum(const Tensors& src, const Tensor& dst, bool save) {
  const int bits = bits_for(static_cast<int64_t>(src.size()));
  if (save) {
    winners_ =
        Arena::instance().allocate(packed_bytes(dst.count(), bits), MemoryKind::StoredActivations);
  }
  float* y = dst.data();
  for_each_chunk(dst.count(), [&](int64_t first, int64_t length) {
    float most[kChunk];
    int32_t winner[kChunk] = {};
    copy_chunk(src[0].data() + first, most, length);
    for (size_t k = 1; k < src.size(); ++k) {
      const float* x = src[k].data() + first;
      const auto number = static_cast<int32_t>(k);
      for (int64_t i = 0; i < length; ++i) {
        const bool wins = k == 1 ? !(most[i] > x[i]) : x[i] > most[i];
        most[i] = wins ? x[i] : most[i];
        winner[i] = wins ? number : winner[i];
      }
    }
    copy_chunk(most, y + first, length);
    if (save) pack_codes(winner, length, bits, packed_winners(first, bits));
  });
}

void EltwiseLayer::backward(const BackwardArguments& arguments) {
  if (options_.operation == EltwiseOperation::Maximum) {
    scatter_to_winners(arguments);
    return;
  }
  const float* dy = arguments.diff_dst[0].data();
  for_each_chunk(arguments.diff_dst[0].count(), [&](int64_t first, int64_t length) {
    float result[kChunk];
    // Bottom 0 last: its gradient may be written over dy.
    for (size_t k = bottoms_; k-- > 0;) {
      if (!arguments.diff_src[k].defined()) continue;
      const float factor = coeff(k);
#pragma omp simd
      for (int64_t i = 0; i < length; ++i) result[i] = factor * dy[first + i];
      for (size_t j = 0; j < bottoms_; ++j) {
        if (j == k || options_.operation != EltwiseOperation::Product) continue;
        const float* x = arguments.src[j].data() + first;
#pragma omp simd
        for (int64_t i = 0; i < length; ++i) result[i] *= x[i];
      }
      copy_chunk(result, arguments.diff_src[k].data() + first, length);
    }
  });
}

void EltwiseLayer::scatter_to_winners(const BackwardArguments& arguments) const {
  if (winners_ == nullptr) throw Error("backward without a forward pass that saved its state");
  const int bits = bits_for(static_cast<int64_t>(bottoms_));
  const float* dy = arguments.diff_dst[0].data();
  for_each_chunk(arguments.diff_dst[0].count(), [&](int64_t first, int64_t length) {
    int32_t winner[kChunk];
    unpack_codes(packed_winners(first, bits), length, bits, winner);
    for (size_t k = bottoms_; k-- > 0;) {
      if (!arguments.diff_src[k].defined()) continue;
      float* dx = arguments.diff_src[k].data();
      const auto number = static_cast<int32_t>(k);
#pragma omp simd
      for (int64_t i = 0; i < length; ++i)
        dx[first + i] = winner[i] == number ? dy[first + i] : 0.0f;
    }
  });
}

uint8_t* EltwiseLayer::packed_winners(int64_t first, int bits) const {
  return reinterpret_cast<uint8_t*>(winners_->data()) + first / 8 * bits;
}

size_t EltwiseLayer::saved_bytes() const {
  return winners_ == nullptr ? 0 : winners_->bytes();
}

}  // namespace caffe
