// Local response normalisation of one tile: rows of values, over which a window slides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caffe {

struct LRNTile {
  int64_t rows, width, stride;  // values; stride from row to row
  int64_t reach;                // rows to each side that belong to the window
  int64_t reach_beside;         // columns to each side likewise; 0: only its own
  float base, factor, beta;     // s = base + factor * sum of squares in the window
};

// Doubles of scratch that these two want.
size_t lrn_forward_scratch(int64_t width);
size_t lrn_backward_scratch(int64_t rows, int64_t width);

void lrn_forward(const LRNTile& tile, const float* x, float* y, double* scratch);
void lrn_backward(const LRNTile& tile, const float* x, const float* dy, float* dx, double* scratch);

}  // namespace caffe
