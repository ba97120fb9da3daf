// Times uneven all_to_alls. In some measurements the counts change in every call, as with expert routing. In other
// measurements the counts repeat. Prints the median times of rank 0. The time to start a call includes its planning:
//
//   mpirun -n 4 build/tests_run "how fast exchanges with new counts are"
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/base/random.hpp"
#include "src/memory/tensor.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/median.hpp"

namespace chorale::test {
namespace {

constexpr int calls = 400;

// The counts of all ranks in call `call`. Each pair of ranks exchanges `mean` elements, plus or minus up to half.
std::vector<std::int64_t> counts_of(int size, std::int64_t mean, std::uint64_t call) {
  const Random random{.seed = call};
  std::vector<std::int64_t> counts;
  for (int pair = 0; pair < size * size; ++pair)
    counts.push_back(mean / 2 +
                     static_cast<std::int64_t>(random.uniform(static_cast<std::uint64_t>(pair)) * static_cast<float>(mean)));
  return counts;
}

struct Microseconds {
  double start, all;  // time to start a call, and time from start to end, both in seconds
};

Microseconds time_of_call(Communicator& c, const Tensor& from, const Tensor& to, std::int64_t mean, bool new_counts) {
  std::vector<double> starts, alls;
  const auto p = static_cast<std::size_t>(c.size()), me = static_cast<std::size_t>(c.rank());
  const auto sum = [](const auto& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); };
  for (int call = 0; call < calls; ++call) {
    const auto everybodys = counts_of(c.size(), mean, new_counts ? static_cast<std::uint64_t>(call) : 0);
    std::vector<std::int64_t> given, taken;
    for (std::size_t other = 0; other < p; ++other) {
      given.push_back(everybodys[me * p + other]);
      taken.push_back(everybodys[other * p + me]);
    }
    c.barrier();
    const double begin = c.clock().seconds();
    Request request =
        c.start_all_to_all(from.slice().narrow(0, sum(given)), to.slice().narrow(0, sum(taken)), given, taken, everybodys);
    starts.push_back(c.clock().seconds() - begin);
    request.wait();
    alls.push_back(c.clock().seconds() - begin);
  }
  return {median(starts) * 1e6, median(alls) * 1e6};
}

TEST_CASE("how fast exchanges with new counts are", "[!benchmark]") {
  SystemClock clock;
  for (const Backend& backend : all_backends()) {
    if (world().size() < 2 || !joins_all(backend)) continue;
    Communicator c = open_world(backend.name, world(), clock);
    for (const std::int64_t mean : {64, 16 << 10}) {
      const Tensor from(c.allocator(), {2 * mean * c.size()}, DType::f32, Category::comm),
          to(c.allocator(), from.shape(), DType::f32, Category::comm);
      const Microseconds same = time_of_call(c, from, to, mean, false), fresh = time_of_call(c, from, to, mean, true);
      if (world().rank() == 0)
        fmt::print(
            "{:8} {} ranks, {:5} floats for each: {:5.1f} µs to start, {:6.1f} in all; with new counts {:5.1f}, {:6.1f}\n",
            backend.name, world().size(), mean, same.start, same.all, fresh.start, fresh.all);
    }
  }
}

}  // namespace
}  // namespace chorale::test
