// From stored images to the input of a net: crop, mirror, mean and scale in one pass.
//
//   dst[c][y][x] = (src[c][top + y][left + x'] - mean) * scale,  x' = x, or width - 1 - x if
//   mirrored
//
// An image is C x H x W in C order, of bytes or of floats; dst is C x height x width floats. The
// mean is one of: nothing, C values, or C x H x W values taken at the source's position.
#pragma once

#include <cstdint>
#include <vector>

namespace caffe {

struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t count() const { return channels * height * width; }
};

// One source image. Exactly one of bytes and floats is set; the memory belongs to the caller.
struct SourceImage {
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  ImageShape shape;
};

// Where an image is cut out, and whether it is mirrored.
struct Window {
  int64_t top = 0;
  int64_t left = 0;
  bool mirror = false;
};

struct TransformOptions {
  int64_t crop_size = 0;     // side of the square cut out; 0: the whole image
  bool random_crop = false;  // a random place (training), or the centre
  bool mirror = false;       // mirror every other image, at random
  float scale = 1;
  std::vector<float> mean;  // empty, one value a channel, or a whole image
  uint64_t random_key = 0;  // of the layer; with an image's index it fixes all that is random
};

// The window of image number `index`, a pure function of its arguments.
Window draw_window(const TransformOptions& options, const ImageShape& shape, uint64_t index);

// Transforms images number first_index, first_index + 1, ... into dst, one behind the other.
// Throws ConfigError where an image is smaller than the crop, differs from the shape of the others,
// or does not fit the mean; the message gives its place in the batch.
void transform_batch(const std::vector<SourceImage>& images, const TransformOptions& options,
                     uint64_t first_index, float* dst);

}  // namespace caffe
