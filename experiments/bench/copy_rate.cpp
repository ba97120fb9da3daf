#include "experiments/bench/copy_rate.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/parallel.hpp"
#include "src/math/copy.hpp"

namespace chorale::bench {

double copy_rate(double bytes, int threads, const Clock& clock) {
  constexpr double least = 4096, most = 256 << 20, seconds_of_all = 5e-3;
  constexpr std::int64_t bytes_at_once = 1 << 20;  // small copies are repeated, because reading the clock takes time too
  const auto half = static_cast<std::int64_t>(std::clamp(bytes, least, most) / 2);
  const std::vector<char> from(static_cast<std::size_t>(half), 1);
  std::vector<char> to(from);
  const auto repeats = std::max<std::int64_t>(1, bytes_at_once / half);
  const auto seconds_of_one = [&](auto copy) {
    const double began = clock.seconds();
    parallel_for(threads, half, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = 0; i < repeats; ++i) {
        copy(to.data() + first, from.data() + first, last - first);
        asm volatile("" : : "r"(to.data()) : "memory");  // keeps the compiler from removing the copy
      }
    });
    return (clock.seconds() - began) / static_cast<double>(repeats);
  };
  const auto cached = [](char* out, const char* in, std::int64_t count) {
    std::memcpy(out, in, static_cast<std::size_t>(count));
  };
  seconds_of_one(cached);  // brings the operands into the cache, and starts the threads
  double fastest = seconds_of_one(cached);
  const double start = clock.seconds();
  for (int i = 0; i < 3 || clock.seconds() < start + seconds_of_all; ++i)
    fastest = std::min({fastest, seconds_of_one(cached), seconds_of_one(stream)});
  return 2 * static_cast<double>(half) / fastest;
}

}  // namespace chorale::bench
