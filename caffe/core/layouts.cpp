#include "caffe/core/layouts.hpp"

namespace caffe {
namespace {

ScratchMemory borrowed(const dnnl::memory& memory) {
  ScratchMemory result;
  result.memory = memory;
  return result;
}

}  // namespace

ScratchMemory plain_memory(const Tensor& tensor) {
  return borrowed(wrap(plain_desc(tensor.shape()), tensor.data()));
}

ScratchMemory in_layout(const ScratchMemory& memory, const dnnl::memory::desc& layout) {
  if (memory.memory.get_desc() == layout) return memory;
  ScratchMemory copy(layout);
  reorder(memory.memory, copy.memory);
  return copy;
}

ScratchMemory output_memory(const ScratchMemory& plain, const dnnl::memory::desc& layout) {
  if (plain.memory.get_desc() == layout) return plain;
  return ScratchMemory(layout);
}

void reorder_and_add(const dnnl::memory& from, const dnnl::memory& to) {
  dnnl::post_ops add;
  add.append_sum(1.0f);
  dnnl::primitive_attr attributes = user_scratchpad();
  attributes.set_post_ops(add);
  const dnnl::reorder::primitive_desc desc(onednn_engine(), from.get_desc(), onednn_engine(),
                                           to.get_desc(), attributes);
  run(dnnl::reorder(desc), desc.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace caffe
