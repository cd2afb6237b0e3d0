// Loops over the machine's cores. Static division: the same thread count gives the same result.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace caffe {

// Below this many values a loop is not worth waking threads for.
constexpr int64_t kParallelGrain = 16384;

// Calls body(begin, end) on contiguous parts of [0, count), one a thread. `grain`: the least count
// worth a thread of its own. An exception must not leave body.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t useful = count / std::max<int64_t>(grain, 1);
  const int threads = static_cast<int>(std::clamp<int64_t>(useful, 1, omp_get_max_threads()));
  if (threads == 1 || omp_in_parallel()) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = count * thread / threads;
    const int64_t end = count * (thread + 1) / threads;
    if (begin < end) body(begin, end);
  }
}

}  // namespace caffe
