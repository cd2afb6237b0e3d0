#include "caffe/layers/pooling_geometry.hpp"

#include <limits>

#include "caffe/core/error.hpp"

namespace caffe {
namespace {

int64_t output_size(const char* what, int64_t in, int64_t kernel, int64_t stride, int64_t pad,
                    RoundMode round) {
  require(kernel > 0, "kernel ", what, " is ", kernel, ", needs to be positive");
  require(stride > 0, "stride ", what, " is ", stride, ", needs to be positive");
  require(pad >= 0 && pad < kernel, "pad ", what, " is ", pad,
          ", needs to be less than the kernel's ", kernel);
  const int64_t room = in + 2 * pad - kernel;
  // The division rounds towards zero: up, for a kernel that is larger than its bottom.
  const int64_t steps = room < 0                   ? (round == RoundMode::Ceil ? room / stride : -1)
                        : round == RoundMode::Ceil ? (room + stride - 1) / stride
                                                   : room / stride;
  require(steps >= 0, "a kernel ", what, " of ", kernel, " does not fit in ", in,
          " pixels with padding of ", pad);
  // The last window starts inside the bottom or the padding before it.
  return (steps * stride >= in + pad ? steps - 1 : steps) + 1;
}

}  // namespace

PoolPlane pooling_plane(const PoolingOptions& o, const Shape& src) {
  require(src.size() == 4, "bottom 0 is ", shape_string(src),
          ", needs 4 axes: batch, channels, height and width");
  require(shape_count(src) > 0, "bottom 0 is ", shape_string(src), ": empty");
  PoolPlane p = {src[2],     src[3],     0,          0,       o.kernel_h,
                 o.kernel_w, o.stride_h, o.stride_w, o.pad_h, o.pad_w};
  if (o.global) {
    require(o.pad_h == 0 && o.pad_w == 0 && o.stride_h == 1 && o.stride_w == 1,
            "global_pooling takes neither pad nor stride");
    p.kernel_h = p.height;
    p.kernel_w = p.width;
  }
  p.out_height = output_size("height", p.height, p.kernel_h, p.stride_h, p.pad_h, o.round);
  p.out_width = output_size("width", p.width, p.kernel_w, p.stride_w, p.pad_w, o.round);
  require(p.kernel_h * p.kernel_w < std::numeric_limits<int32_t>::max() &&
              p.size() < std::numeric_limits<int32_t>::max(),
          "bottom 0 is ", shape_string(src), ": more than 2^31 pixels in a plane");

  require(o.method != PoolMethod::Stochastic || (p.pad_h == 0 && p.pad_w == 0),
          "STOCHASTIC pooling takes no pad");
  return p;
}

}  // namespace caffe
