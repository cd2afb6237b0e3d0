#include "caffe/layers/channels.hpp"

#include <cmath>
#include <type_traits>

namespace caffe {
namespace {

constexpr int64_t kBlock = 4096;  // values: a second pass over a block reads the L1 cache
constexpr int kLanes = 16;        // partial sums of a block: enough to hide additions' latency
constexpr int64_t kColumns = 64;  // channels summed side by side

float total(const float (&lanes)[kLanes]) {
  float sums[kLanes];
  std::copy_n(lanes, kLanes, sums);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

struct BlockSums {
  float first;
  float second;
};

// Sums of both numbers that term(i) gives, over [0, count).
template <typename Term>
BlockSums sum_block(int64_t count, const Term& term) {
  float first[kLanes] = {};
  float second[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd  // else compilers vectorise the loop around it, with shuffles
    for (int lane = 0; lane < kLanes; ++lane) {
      const BlockSums values = term(i + lane);
      first[lane] += values.first;
      second[lane] += values.second;
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    const BlockSums values = term(i);
    first[i - whole] += values.first;
    second[i - whole] += values.second;
  }
  return {total(first), total(second)};
}

// A tensor cut into blocks: row r holds block r % per_plane of each channel's plane r / per_plane.
struct Blocks {
  explicit Blocks(const ChannelShape& shape)
      : shape(shape),
        per_plane((shape.inner + kBlock - 1) / kBlock),
        rows(shape.outer * per_plane) {}

  int64_t length(int64_t row) const {
    return std::min(kBlock, shape.inner - row % per_plane * kBlock);
  }

  // body(row, channel, first value, length) for every block, in the order of memory.
  template <typename Body>
  void for_each(const Body& body) const {
    const int64_t grain = kParallelGrain / std::min(kBlock, std::max<int64_t>(shape.inner, 1)) + 1;
    parallel_for(rows * shape.channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t plane = block / per_plane;
        const int64_t row = plane / shape.channels * per_plane + block % per_plane;
        const int64_t first = plane * shape.inner + block % per_plane * kBlock;
        body(row, plane % shape.channels, first, length(row));
      }
    });
  }

  ChannelShape shape;
  int64_t per_plane;
  int64_t rows;
};

// out[c] = the double sum over rows of term(row, c); with `accumulate`, that and what was there. In
// doubles the sum goes on as if the rows before had been among these.
template <typename Out, typename Term>
void write_column_sums(int64_t rows, int64_t channels, bool accumulate, Out* out,
                       const Term& term) {
  constexpr bool kGoesOn = std::is_same_v<Out, double>;
  const int64_t groups = (channels + kColumns - 1) / kColumns;
  const int64_t grain = kParallelGrain / (std::max<int64_t>(rows, 1) * kColumns) + 1;
  parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kColumns;
      const int64_t width = std::min(kColumns, channels - first);
      double sums[kColumns] = {};
      if (kGoesOn && accumulate) std::copy_n(out + first, width, sums);
      for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) sums[j] += term(row, first + j);
      }
      for (int64_t j = 0; j < width; ++j) {
        const Out before = !kGoesOn && accumulate ? out[first + j] : Out{0};
        out[first + j] = before + static_cast<Out>(sums[j]);
      }
    }
  });
}

// Sums over blocks of the two numbers that term(i) gives; `second` may be null.
template <typename Out, typename Term>
void sum_channels(const ChannelShape& shape, bool accumulate, Out* first, Out* second,
                  const Term& term) {
  const int64_t channels = shape.channels;
  if (shape.inner == 1) {
    const auto column = [=](auto part) {
      return [=](int64_t row, int64_t c) {
        return static_cast<double>(term(row * channels + c).*part);
      };
    };
    write_column_sums(shape.outer, channels, accumulate, first, column(&BlockSums::first));
    if (second != nullptr) {
      write_column_sums(shape.outer, channels, accumulate, second, column(&BlockSums::second));
    }
    return;
  }
  const Blocks blocks(shape);
  const Tensor partial = Tensor::make({2, blocks.rows, channels}, MemoryKind::Workspace);
  float* firsts = partial.data();
  float* seconds = firsts + blocks.rows * channels;
  blocks.for_each([=](int64_t row, int64_t c, int64_t begin, int64_t length) {
    const BlockSums sums = sum_block(length, [=](int64_t i) { return term(begin + i); });
    firsts[row * channels + c] = sums.first;
    seconds[row * channels + c] = sums.second;
  });
  const auto column = [channels](const float* sums) {
    return [=](int64_t row, int64_t c) { return static_cast<double>(sums[row * channels + c]); };
  };
  write_column_sums(blocks.rows, channels, accumulate, first, column(firsts));
  if (second != nullptr) {
    write_column_sums(blocks.rows, channels, accumulate, second, column(seconds));
  }
}

}  // namespace

ChannelShape ChannelShape::of(const Shape& shape, size_t axis, size_t axes) {
  ChannelShape view{shape_count(shape, 0, axis), shape_count(shape, axis, axis + axes),
                    shape_count(shape, axis + axes, shape.size())};
  // One channel is one long run, whatever lies on either side of it.
  if (view.channels == 1) view = {1, 1, view.outer * view.inner};
  return view;
}

void channel_moments(const float* x, const ChannelShape& shape, float* mean, float* variance) {
  const int64_t channels = shape.channels;
  const Blocks blocks(shape);
  // Each block's mean and sum of squared deviations. A block of one value is its own mean.
  const bool single = shape.inner == 1;
  const Tensor partial =
      Tensor::make({2, single ? 0 : blocks.rows, channels}, MemoryKind::Workspace);
  float* block_means = partial.data();
  float* block_squares = block_means + partial.count() / 2;
  if (!single) {
    blocks.for_each([=](int64_t row, int64_t c, int64_t begin, int64_t length) {
      const float* v = x + begin;
      const float n = static_cast<float>(length);
      const auto value = [=](int64_t i) { return BlockSums{v[i], 0}; };
      const float rough = sum_block(length, value).first / n;
      // The deviations' own sum corrects the rounding of `rough`.
      const BlockSums sums = sum_block(length, [=](int64_t i) {
        const float d = v[i] - rough;
        return BlockSums{d, d * d};
      });
      block_means[row * channels + c] = rough + sums.first / n;
      block_squares[row * channels + c] = std::max(0.0f, sums.second - sums.first * sums.first / n);
    });
  }
  const float* means = single ? x : block_means;
  const double share = 1.0 / static_cast<double>(shape.per_channel());
  write_column_sums(blocks.rows, channels, false, mean, [=](int64_t row, int64_t c) {
    return static_cast<double>(blocks.length(row)) * means[row * channels + c] * share;
  });
  write_column_sums(blocks.rows, channels, false, variance, [=](int64_t row, int64_t c) {
    const int64_t at = row * channels + c;
    const double off = static_cast<double>(means[at]) - mean[c];
    const double within = single ? 0.0 : static_cast<double>(block_squares[at]);
    return (within + static_cast<double>(blocks.length(row)) * off * off) * share;
  });
}

void channel_sums(const float* a, const ChannelShape& shape, bool accumulate, float* sum) {
  sum_channels<float>(shape, accumulate, sum, nullptr, [=](int64_t i) {
    return BlockSums{a[i], 0};
  });
}

void channel_products(const float* a, const float* b, const ChannelShape& shape, bool accumulate,
                      float* sum_ab) {
  sum_channels<float>(shape, accumulate, sum_ab, nullptr, [=](int64_t i) {
    return BlockSums{a[i] * b[i], 0};
  });
}

void channel_abs_sums(const float* a, const ChannelShape& shape, float* sum) {
  sum_channels<float>(shape, false, sum, nullptr, [=](int64_t i) {
    return BlockSums{std::fabs(a[i]), 0};
  });
}

void channel_products_below(const float* a, const float* b, const ChannelShape& shape,
                            bool accumulate, float* sum_ab) {
  sum_channels<float>(shape, accumulate, sum_ab, nullptr, [=](int64_t i) {
    const float product = a[i] * b[i];  // apart: compilers do not vectorise a choice to load
    return BlockSums{b[i] > 0 ? 0.0f : product, 0};
  });
}

void channel_sums_and_products(const float* a, const float* b, const ChannelShape& shape,
                               float* sum_a, float* sum_ab) {
  sum_channels(shape, false, sum_a, sum_ab, [=](int64_t i) {
    return BlockSums{a[i], a[i] * b[i]};
  });
}

void SlicedSums::add_to(Parameter& parameter, int64_t first) const {
  float* gradient = parameter.gradient().data();
  for (int64_t c = 0; c < channels_; ++c) {
    const auto sum = static_cast<float>(sums_[first + c]);
    gradient[c] = parameter.gradient_is_zero ? sum : gradient[c] + sum;
  }
  parameter.gradient_is_zero = false;
}

void SlicedSums::add(const float* a, const float* b, const ChannelShape& shape, bool restart) {
  channels_ = shape.channels;
  per_channel_ = restart ? shape.per_channel() : per_channel_ + shape.per_channel();
  sums_.resize(static_cast<size_t>(2 * channels_));
  double* const sum_a = sums_.data();
  if (b == nullptr) {
    sum_channels<double>(shape, !restart, sum_a, nullptr, [=](int64_t i) {
      return BlockSums{a[i], 0};
    });
  } else {
    sum_channels(shape, !restart, sum_a, sum_a + channels_, [=](int64_t i) {
      return BlockSums{a[i], a[i] * b[i]};
    });
  }
}

}  // namespace caffe
