#include "caffe/store/activation_store.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/core/error.hpp"
#include "caffe/core/parallel.hpp"

namespace caffe {
namespace {

// A guess is given this much room before it is worth trying, and never less than a few pages.
constexpr double kGuessMargin = 1.125;
constexpr size_t kLeastGuess = size_t{1} << 13;
// Without a guess: most bounded activations shrink by more than this.
constexpr size_t kFirstRatio = 4;

size_t first_capacity(int64_t expected_bytes, size_t raw_bytes, size_t worst) {
  const size_t guess = expected_bytes > 0 ? static_cast<size_t>(expected_bytes * kGuessMargin)
                                          : raw_bytes / kFirstRatio;
  return std::min(worst, kLeastGuess + guess);
}

// What statistics_of() gathers of some values. Values that are not finite count as zeros.
struct Partial {
  uint64_t nonzeros = 0;
  double sum = 0;
  double squares = 0;
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();

  void operator+=(const Partial& other) {
    nonzeros += other.nonzeros;
    sum += other.sum;
    squares += other.squares;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

Partial partial_statistics(const float* x, int64_t count) {
  uint64_t nonzeros = 0;
  double sum = 0;
  double squares = 0;
  float least = std::numeric_limits<float>::infinity();
  float most = -least;
#pragma omp simd reduction(+ : nonzeros, sum, squares) reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::abs(x[i]) <= std::numeric_limits<float>::max() ? x[i] : 0.0f;
    nonzeros += value != 0;
    sum += value;
    squares += static_cast<double>(value) * value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return {nonzeros, sum, squares, least, most};
}

}  // namespace

int64_t StoredActivation::stored_bytes() const {
  const size_t bytes = bytes_ ? bytes_->bytes() : tensor_.bytes();
  return static_cast<int64_t>(bytes);
}

std::shared_ptr<StoredActivation> ActivationStore::save(const Tensor& tensor, Form form,
                                                        double error_bound, bool keep_sign,
                                                        std::optional<uint32_t> dither,
                                                        int64_t expected_bytes, bool count_values,
                                                        double negative_factor) {
  require(tensor.defined() && !tensor.is_mask(), "only float tensors can be stored");
  auto stored = std::make_shared<StoredActivation>();
  stored->form_ = form;
  stored->shape_ = tensor.shape();
  stored->raw_bytes_ = static_cast<int64_t>(tensor.bytes());
  if (form == Form::Raw) {
    stored->tensor_ = tensor;
    if (tensor.block()->kind() == MemoryKind::RawActivations) {
      tensor.block()->set_kind(MemoryKind::StoredActivations);
    }
    return stored;
  }
  if (form == Form::Sign) {
    stored->tensor_ = pack_sign(tensor, MemoryKind::StoredActivations);
    return stored;
  }
  sz::Options options;
  options.error_bound = form == Form::Bounded ? error_bound : 0;
  options.keep_sign = keep_sign;
  options.negative_factor = form == Form::Bounded ? negative_factor : 1;
  options.dither = form == Form::Bounded && dither.has_value();
  options.seed = dither.value_or(0);
  stored->error_bound_ = options.error_bound;

  const size_t worst = sz::max_compressed_size(static_cast<size_t>(tensor.count()), tensor.axes());
  // The worst case is as large as the raw values: rather compress again than hold both.
  size_t capacity = first_capacity(expected_bytes, tensor.bytes(), worst);
  for (;;) {
    auto block = Arena::instance().allocate(capacity, MemoryKind::StoredActivations);
    const size_t bytes = sz::compress(context_, tensor.data(), tensor.shape(), options,
                                      reinterpret_cast<uint8_t*>(block->data()), capacity,
                                      count_values ? &stored->statistics_ : nullptr);
    if (bytes > 0) {
      block->shrink(bytes);
      stored->bytes_ = std::move(block);
      return stored;
    }
    if (capacity == worst) throw Error("the compressor ran past its own worst case");
    capacity = std::min(worst, 2 * capacity);
  }
}

Tensor ActivationStore::restore(const StoredActivation& stored) {
  if (!stored.bytes_) return stored.tensor_;
  Tensor tensor = Tensor::make(stored.shape_, MemoryKind::RawActivations);
  sz::decompress(context_, reinterpret_cast<const uint8_t*>(stored.bytes_->data()),
                 stored.bytes_->bytes(), tensor.data(), static_cast<size_t>(tensor.count()));
  return tensor;
}

void ActivationStore::restore_into(const StoredActivation& stored, int64_t first,
                                   const Tensor& dst) {
  const int64_t count = dst.count();
  require(first >= 0 && first + count <= shape_count(stored.shape_), "values ", first, " to ",
          first + count, " of ", shape_string(stored.shape_), " do not exist");
  float* y = dst.data();
  if (stored.bytes_) {
    sz::decompress_range(context_, reinterpret_cast<const uint8_t*>(stored.bytes_->data()),
                         stored.bytes_->bytes(), static_cast<uint64_t>(first),
                         static_cast<size_t>(count), y);
  } else if (stored.tensor_.is_mask()) {
    const uint64_t* words = stored.tensor_.mask_words();
    parallel_for(count, kParallelGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<float>(words[(first + i) / 64] >> ((first + i) % 64) & 1);
      }
    });
  } else {
    const float* x = stored.tensor_.data() + first;
    parallel_for(count, kParallelGrain,
                 [=](int64_t begin, int64_t end) { std::copy(x + begin, x + end, y + begin); });
  }
}

Tensor pack_sign(const Tensor& tensor, MemoryKind kind) {
  Tensor mask = Tensor::make(tensor.shape(), kind, DType::Mask);
  const float* x = tensor.data();
  uint64_t* words = mask.mask_words();
  const int64_t count = tensor.count();
  parallel_for((count + 63) / 64, kParallelGrain / 64, [=](int64_t begin, int64_t end) {
    for (int64_t word = begin; word < end; ++word) {
      const int64_t first = word * 64;
      const int64_t length = std::min<int64_t>(64, count - first);
      uint64_t bits = 0;
      for (int64_t i = 0; i < length; ++i) {
        bits |= static_cast<uint64_t>(x[first + i] > 0) << i;
      }
      words[word] = bits;
    }
  });
  return mask;
}

sz::Statistics statistics_of(const Tensor& tensor) {
  require(tensor.defined() && !tensor.is_mask(), "only float tensors have statistics");
  const float* x = tensor.data();
  const Partial all = parallel_sum<Partial>(tensor.count(), [=](int64_t begin, int64_t end) {
    return partial_statistics(x + begin, end - begin);
  });
  sz::Statistics statistics;
  statistics.count = static_cast<uint64_t>(tensor.count());
  statistics.nonzeros = all.nonzeros;
  statistics.sum = all.sum;
  statistics.sum_squares = all.squares;
  if (tensor.count() > 0) {
    statistics.min = all.least;
    statistics.max = all.most;
  }
  return statistics;
}

}  // namespace caffe
