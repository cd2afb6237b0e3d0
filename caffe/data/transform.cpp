#include "caffe/data/transform.hpp"

#include <algorithm>

#include "caffe/core/error.hpp"
#include "caffe/core/parallel.hpp"
#include "caffe/core/random.hpp"

namespace caffe {
namespace {

// A thread must have this many values to be worth waking: some tenths of a millisecond's work.
constexpr int64_t kValuesPerThread = int64_t{1} << 19;

// A number in [0, range), without the bias of a remainder.
int64_t scaled(uint32_t random, int64_t range) {
  return static_cast<int64_t>((uint64_t{random} * static_cast<uint64_t>(range)) >> 32);
}

// One row: dst[x] = (src[x] - mean) * scale, with a mean a pixel or one for all. To mirror, dst is
// turned round while it is in the cache: reading src backwards takes twice as long.
template <typename T>
void transform_row(const T* src, const float* mean_row, float mean, float scale, bool mirror,
                   int64_t width, float* dst) {
  if (mean_row != nullptr) {
    for (int64_t x = 0; x < width; ++x) {
      dst[x] = (static_cast<float>(src[x]) - mean_row[x]) * scale;
    }
  } else {
    for (int64_t x = 0; x < width; ++x) dst[x] = (static_cast<float>(src[x]) - mean) * scale;
  }
  if (mirror) std::reverse(dst, dst + width);
}

template <typename T>
void transform_image(const T* src, const ImageShape& shape, const Window& window,
                     const TransformOptions& options, int64_t height, int64_t width, float* dst) {
  const int64_t mean_count = static_cast<int64_t>(options.mean.size());
  const bool mean_image = mean_count > shape.channels;
  for (int64_t c = 0; c < shape.channels; ++c) {
    const float mean = mean_count == shape.channels ? options.mean[c] : 0;
    for (int64_t y = 0; y < height; ++y) {
      const int64_t at = (c * shape.height + window.top + y) * shape.width + window.left;
      const float* mean_row = mean_image ? options.mean.data() + at : nullptr;
      transform_row(src + at, mean_row, mean, options.scale, window.mirror, width, dst);
      dst += width;
    }
  }
}

void check(const std::vector<SourceImage>& images, const TransformOptions& options) {
  const ImageShape& first = images[0].shape;
  const int64_t mean_count = static_cast<int64_t>(options.mean.size());
  for (size_t i = 0; i < images.size(); ++i) {
    const ImageShape& shape = images[i].shape;
    const std::string size = message(shape.channels, "x", shape.height, "x", shape.width);
    require(shape.channels > 0 && shape.height > 0 && shape.width > 0, "image ", i,
            " of the batch is ", size, ", which holds nothing");
    require(shape.channels == first.channels, "image ", i, " of the batch has ", shape.channels,
            " channels, the first has ", first.channels);
    require(options.crop_size > 0 || (shape.height == first.height && shape.width == first.width),
            "image ", i, " of the batch is ", size, ", the first is ", first.channels, "x",
            first.height, "x", first.width, "; without crop_size all must be of one size");
    require(options.crop_size <= shape.height && options.crop_size <= shape.width, "image ", i,
            " of the batch is ", size, ", smaller than crop_size ", options.crop_size);
    require(mean_count == 0 || mean_count == shape.channels || mean_count == shape.count(),
            "image ", i, " of the batch is ", size, ", which the mean of ", mean_count,
            " values does not fit");
  }
}

}  // namespace

Window draw_window(const TransformOptions& options, const ImageShape& shape, uint64_t index) {
  Window window;
  const PhiloxBlock random = random_group(options.random_key, index, 0);
  window.mirror = options.mirror && (random[0] >> 31) != 0;
  if (options.crop_size > 0) {
    const int64_t spare_rows = shape.height - options.crop_size;
    const int64_t spare_columns = shape.width - options.crop_size;
    window.top = options.random_crop ? scaled(random[1], spare_rows + 1) : spare_rows / 2;
    window.left = options.random_crop ? scaled(random[2], spare_columns + 1) : spare_columns / 2;
  }
  return window;
}

void transform_batch(const std::vector<SourceImage>& images, const TransformOptions& options,
                     uint64_t first_index, float* dst) {
  if (images.empty()) return;
  check(images, options);
  const ImageShape& first = images[0].shape;
  const int64_t height = options.crop_size > 0 ? options.crop_size : first.height;
  const int64_t width = options.crop_size > 0 ? options.crop_size : first.width;
  const int64_t image_count = first.channels * height * width;
  const int64_t grain = kValuesPerThread / image_count + 1;
  parallel_for(static_cast<int64_t>(images.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const SourceImage& image = images[i];
      const Window window = draw_window(options, image.shape, first_index + i);
      float* out = dst + i * image_count;
      if (image.bytes != nullptr) {
        transform_image(image.bytes, image.shape, window, options, height, width, out);
      } else {
        transform_image(image.floats, image.shape, window, options, height, width, out);
      }
    }
  });
}

}  // namespace caffe
