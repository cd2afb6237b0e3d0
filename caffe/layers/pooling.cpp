#include "caffe/layers/pooling.hpp"

#include <algorithm>

#include "caffe/core/parallel.hpp"

namespace caffe {

std::vector<Shape> PoolingLayer::reshape(const std::vector<Shape>& bottoms) {
  check_count("bottoms", bottoms.size(), 1, 1);
  const Shape& src = bottoms[0];
  plane_ = pooling_plane(options_, src);
  const PoolPlane& p = plane_;

  widths_.resize(p.out_width);
  for (int64_t ow = 0; ow < p.out_width; ++ow) {
    const int64_t left = ow * p.stride_w - p.pad_w;
    widths_[ow] = static_cast<float>(std::min(left + p.kernel_w, p.width + p.pad_w) - left);
  }
  offsets_.resize(options_.method == PoolMethod::Average ? 0 : p.kernel_h * p.kernel_w);
  for (size_t code = 0; code < offsets_.size(); ++code) {
    const int64_t row = static_cast<int64_t>(code) / p.kernel_w;
    offsets_[code] = static_cast<int32_t>(row * p.width + static_cast<int64_t>(code) % p.kernel_w);
  }
  index_.set(p.out_size(), p.kernel_h * p.kernel_w);
  const Shape dst = {src[0], src[1], p.out_height, p.out_width};
  return std::vector<Shape>(options_.mask_top ? 2 : 1, dst);
}

Needs PoolingLayer::needs(const Propagation&) const {
  return no_needs(1, options_.mask_top ? 2 : 1);
}

Traits PoolingLayer::traits() const {
  Traits traits;
  // Second tops are not worked out again; the means of STOCHASTIC in TEST have no backward pass.
  traits.cheap = !options_.mask_top;
  traits.batch_axis = BatchAxis::Independent;
  traits.slices = true;
  traits.any_slices = true;
  if (options_.method == PoolMethod::Max) {
    traits.keeps_sign = true;
    traits.inverse = Inverse::Selected;
  }
  return traits;
}

template <typename Body>
void PoolingLayer::for_each_plane(const Tensor& src, const Tensor& dst, const Body& body) const {
  const float* x = src.data();
  float* y = dst.data();
  const int64_t planes = src.dim(0) * src.dim(1);
  parallel_for(planes, kParallelGrain / plane_.size() + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(x + i * plane_.size(), y + i * plane_.out_size());
  });
}

void PoolingLayer::forward(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (context.slice.index == 0) index_.clear();
  if (options_.method == PoolMethod::Average) {
    for_each_plane(src[0], dst[0],
                   [&](const float* x, float* y) { average_pool(plane_, widths_.data(), x, y); });
  } else if (options_.method == PoolMethod::Stochastic && !context.train) {
    for_each_plane(src[0], dst[0], [&](const float* x, float* y) { weighted_pool(plane_, x, y); });
  } else {
    take(src, dst, context);
  }
}

void PoolingLayer::take(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  const int64_t planes = src[0].dim(0) * src[0].dim(1);
  const int64_t earlier = context.slice.first * src[0].dim(1);  // planes of the batch
  const bool save = context.save_for_backward;
  uint8_t* const index = save ? index_.make(earlier, planes) : nullptr;
  const float* x = src[0].data();
  float* y = dst[0].data();
  float* mask = options_.mask_top ? dst[1].data() : nullptr;
  const ThreadScratch<int32_t> scratch(plane_.out_size());
  parallel_for(planes, kParallelGrain / plane_.size() + 1, [&](int64_t begin, int64_t end) {
    int32_t* codes = scratch.mine();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * plane_.out_size();
      if (options_.method == PoolMethod::Max) {
        max_pool(plane_, x + i * plane_.size(), y + first, codes);
      } else {
        const int64_t drawn = first + earlier * plane_.out_size();
        stochastic_pool(plane_, {context.random_key, context.forward_count, drawn},
                        x + i * plane_.size(), y + first, codes);
      }
      if (save) index_.put(codes, index, i);
      if (mask != nullptr) write_mask(codes, mask + first);
    }
  });
}

void PoolingLayer::write_mask(const int32_t* codes, float* mask) const {
  const PoolPlane& p = plane_;
  for (int64_t o = 0; o < p.out_size(); ++o) {
    const int64_t top = o / p.out_width * p.stride_h - p.pad_h;
    const int64_t left = o % p.out_width * p.stride_w - p.pad_w;
    mask[o] = static_cast<float>(top * p.width + left + offsets_[codes[o]]);
  }
}

void PoolingLayer::backward(const BackwardArguments& arguments) {
  const Tensor& diff_src = arguments.diff_src[0];
  if (!diff_src.defined()) return;
  if (options_.method != PoolMethod::Average) {
    give_back(arguments.diff_dst[0], diff_src, arguments.slice);
    return;
  }
  const float* dy = arguments.diff_dst[0].data();
  float* dx = diff_src.data();
  const ThreadScratch<float> scratch(plane_.out_width);
  const int64_t planes = diff_src.dim(0) * diff_src.dim(1);
  parallel_for(planes, kParallelGrain / plane_.size() + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      average_pool_backward(plane_, widths_.data(), dy + i * plane_.out_size(), scratch.mine(),
                            dx + i * plane_.size());
    }
  });
}

void PoolingLayer::give_back(const Tensor& diff_dst, const Tensor& diff_src,
                             const BatchSlice& slice) {
  const float* dy = diff_dst.data();
  float* dx = diff_src.data();
  index_.for_each_plane(slice.first * diff_src.dim(1), diff_src.dim(0) * diff_src.dim(1),
                        [&](int64_t i, const int32_t* codes) {
                          max_pool_backward(plane_, dy + i * plane_.out_size(), codes,
                                            offsets_.data(), dx + i * plane_.size());
                        });
}

void PoolingLayer::rerun(const Tensors& src, const Tensors& dst, const ForwardContext& context) {
  if (options_.method == PoolMethod::Average) {
    for_each_plane(src[0], dst[0],
                   [&](const float* x, float* y) { average_pool(plane_, widths_.data(), x, y); });
    return;
  }
  const float* x = src[0].data();
  float* y = dst[0].data();
  index_.for_each_plane(context.slice.first * src[0].dim(1), src[0].dim(0) * src[0].dim(1),
                        [&](int64_t i, const int32_t* codes) {
                          max_pool_gather(plane_, x + i * plane_.size(), codes, offsets_.data(),
                                          y + i * plane_.out_size());
                        });
}

// Each maximum where it was found, summed over windows, and 0 elsewhere: of that sum the sign is
// right wherever maxima are not below 0, as after a ReLU.
void PoolingLayer::invert(const Tensor& dst, const Tensor& src, const BatchSlice& slice) {
  give_back(dst, src, slice);
}

}  // namespace caffe
