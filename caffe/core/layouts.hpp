// Moves tensors between plain layout and the one a oneDNN primitive wants, copying only if they
// differ.
#pragma once

#include "caffe/core/onednn.hpp"

namespace caffe {

// The tensor's own buffer, in plain layout.
ScratchMemory plain_memory(const Tensor& tensor);

// `memory` itself if it has the layout already, else a copy in workspace.
ScratchMemory in_layout(const ScratchMemory& memory, const dnnl::memory::desc& layout);

// Where a primitive is to write: `plain` itself if it writes that layout, else workspace, to be
// moved with reorder() afterwards (when .block is set).
ScratchMemory output_memory(const ScratchMemory& plain, const dnnl::memory::desc& layout);

// to += from, whatever the layouts.
void reorder_and_add(const dnnl::memory& from, const dnnl::memory& to);

}  // namespace caffe
