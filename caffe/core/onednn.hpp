// The shared oneDNN engine and stream, and the few differences between its 2.x and 3.x API.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "caffe/core/tensor.hpp"

namespace caffe {

dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();

// Row-major description of `shape`.
dnnl::memory::desc plain_desc(const Shape& shape);
// The same shape in whatever layout the primitive likes best.
dnnl::memory::desc any_desc(const Shape& shape);

dnnl::memory wrap(const dnnl::memory::desc& desc, void* data);
// Workspace memory from the arena, alive as long as `holder`.
struct ScratchMemory {
  ScratchMemory() = default;
  ScratchMemory(const dnnl::memory::desc& desc, MemoryKind kind = MemoryKind::Workspace);
  std::shared_ptr<Block> block;
  dnnl::memory memory;
};

// Copies with a change of layout; waits for the end.
void reorder(const dnnl::memory& from, const dnnl::memory& to);

// Runs the primitive with a scratchpad from the arena and waits for the end.
// The primitive must have been made with attributes from user_scratchpad().
dnnl::primitive_attr user_scratchpad();
void run(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
         std::unordered_map<int, dnnl::memory> arguments);

// C = alpha * op(A) * op(B) + beta * C, row-major, float32; op transposes when its flag is 'T'.
// A is m x k, B is k x n after op; lda, ldb, ldc are row strides of the stored matrices.
void gemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
          int64_t ldc);

}  // namespace caffe
