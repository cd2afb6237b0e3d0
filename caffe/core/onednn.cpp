#include "caffe/core/onednn.hpp"

#include <utility>

#include "caffe/core/error.hpp"

namespace caffe {

dnnl::engine& onednn_engine() {
  // Never destroyed: layers that Python still holds at exit use it.
  static dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& onednn_stream() {
  // One a thread: two nets in two threads must not share one.
  static thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

dnnl::memory::desc plain_desc(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return {shape, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc any_desc(const Shape& shape) {
  return {shape, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

dnnl::memory wrap(const dnnl::memory::desc& desc, void* data) {
  return {desc, onednn_engine(), data};
}

ScratchMemory::ScratchMemory(const dnnl::memory::desc& desc, MemoryKind kind)
    : block(Arena::instance().allocate(desc.get_size(), kind)), memory(wrap(desc, block->data())) {}

void reorder(const dnnl::memory& from, const dnnl::memory& to) {
  dnnl::reorder(from, to).execute(onednn_stream(), const_cast<dnnl::memory&>(from),
                                  const_cast<dnnl::memory&>(to));
  onednn_stream().wait();
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void run(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
         std::unordered_map<int, dnnl::memory> arguments) {
  ScratchMemory scratch;
  if (scratchpad.get_size() > 0) {
    scratch = ScratchMemory(scratchpad);
    arguments[DNNL_ARG_SCRATCHPAD] = scratch.memory;
  }
  primitive.execute(onednn_stream(), arguments);
  onednn_stream().wait();
}

void gemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
          int64_t ldc) {
  const dnnl::status status =
      dnnl::sgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl::status::success) {
    throw Error(message("matrix product of ", m, "x", k, " and ", k, "x", n, " failed in oneDNN"));
  }
}

}  // namespace caffe
