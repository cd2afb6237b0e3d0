// Loops over the machine's cores. Static division: the same thread count gives the same result.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace caffe {

// Below this many values a loop is not worth waking threads for.
constexpr int64_t kParallelGrain = 16384;

// body(begin, end), of which there are two: for what every processor has, and with AVX2, twice as
// wide, for those that have it. The results are the same: nothing is added up in another order.
#if defined(__x86_64__)
template <typename Body>
__attribute__((target("avx2"), flatten)) void run_with_avx2(const Body& body, int64_t begin,
                                                            int64_t end) {
  body(begin, end);
}
inline const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
template <typename Body>
void run(const Body& body, int64_t begin, int64_t end) {
  if (kHasAvx2) {
    run_with_avx2(body, begin, end);
  } else {
    body(begin, end);
  }
}
#else
template <typename Body>
void run(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}
#endif

// Calls body(begin, end) on contiguous parts of [0, count), one a thread. `grain`: the least count
// worth a thread of its own. An exception must not leave body.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t useful = count / std::max<int64_t>(grain, 1);
  const int threads = static_cast<int>(std::clamp<int64_t>(useful, 1, omp_get_max_threads()));
  if (threads == 1 || omp_in_parallel()) {
    if (count > 0) run(body, 0, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num();
    const int64_t begin = count * thread / threads;
    const int64_t end = count * (thread + 1) / threads;
    if (begin < end) run(body, begin, end);
  }
}

// Sums body(begin, end) over fixed blocks of [0, count) with +=, in their order: the result is the
// same for any number of threads. An exception must not leave body.
template <typename Sum, typename Body>
Sum parallel_sum(int64_t count, const Body& body) {
  std::vector<Sum> parts(static_cast<size_t>((count + kParallelGrain - 1) / kParallelGrain));
  parallel_for(static_cast<int64_t>(parts.size()), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kParallelGrain;
      parts[static_cast<size_t>(i)] = body(first, std::min(first + kParallelGrain, count));
    }
  });
  Sum sum = {};
  for (const Sum& part : parts) sum += part;
  return sum;
}

}  // namespace caffe
