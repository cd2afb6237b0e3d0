// How many threads work on the chunks of a stream, and which is this.
#pragma once

#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace sz {

// Threads that are worth starting for this many chunks.
inline int useful_threads(int asked, uint64_t chunks) {
#ifdef _OPENMP
  const int most = asked > 0 ? asked : omp_get_max_threads();
#else
  const int most = asked > 0 ? 1 : 1;
#endif
  if (chunks < static_cast<uint64_t>(most)) return chunks > 0 ? static_cast<int>(chunks) : 1;
  return most;
}

inline int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

}  // namespace sz
