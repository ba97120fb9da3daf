// Splits a loop among the threads of one rank. Each thread runs one contiguous range. The results must not depend on the
// boundaries of the ranges, so that they are bit-identical for any number of threads.
//
//   parallel_for(queue.threads, rows, [&](std::int64_t first, std::int64_t last) { … });
//
// The threads are OpenMP's, in a single pool that is shared with oneDNN and kept between loops. Under ThreadSanitizer, which
// cannot analyze OpenMP, the loop runs on one thread.
#pragma once
#include <cstdint>
#include <exception>

namespace chorale {

template <class Body>
void parallel_for(int threads, std::int64_t count, Body&& body) {
  if (threads <= 1 || count <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  std::exception_ptr failure;  // an exception must not leave a parallel region
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; ++t) {
    const std::int64_t first = count * t / threads, last = count * (t + 1) / threads;
    try {
      if (first < last) body(first, last);
    } catch (...) {
#pragma omp critical(chorale_parallel_for)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace chorale
