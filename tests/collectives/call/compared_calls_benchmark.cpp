// Measures the cost of comparing calls between ranks. All-reduces with this comparison alternate with all-reduces without
// it, on the same buffers. (In separate processes, the buffers can be on different pages, which changes times by a fifth.)
// Prints the median times of rank 0:
//
//   mpirun -n 2 build/tests_run "what comparing calls costs"
#include <fmt/format.h>

#include <algorithm>

#include "src/memory/tensor.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/median.hpp"
#include "tests/progress.hpp"

namespace chorale::test {
namespace {

double seconds_of_call(Communicator& c, const Slice& from, const Slice& to, bool compared) {
  constexpr int warm_up = 10, calls = 100;
  std::vector<double> seconds;
  c.check_calls(compared);
  for (int call = -warm_up; call < calls; ++call) {
    const double begin = c.clock().seconds();
    c.all_reduce(from, to);
    if (call >= 0) seconds.push_back(c.clock().seconds() - begin);
  }
  return median(seconds);
}

TEST_CASE("what comparing calls costs", "[!benchmark]") {
  constexpr int turns = 300;
  SystemClock clock;
  for (const Backend& backend : all_backends())
    for (const char* algorithm : {"ring", "native"}) {
      if (world().size() < 2 || !joins_all(backend) ||
          (algorithm == std::string("native") && backend.name != std::string("mpi")))
        continue;
      Communicator c = open_world(backend.name, world(), clock);
      c.choose(Collective::all_reduce, algorithm);
      for (const std::int64_t count : {1 << 10, 16 << 10, 256 << 10}) {
        const Tensor from(c.allocator(), {count}, DType::f32, Category::comm),
            to(c.allocator(), {count}, DType::f32, Category::comm);
        std::ranges::fill(from.values<float>(), 1.0f);
        std::vector<double> ratios, seconds[2];
        for (int turn = 0; turn < turns; ++turn) {
          alive();
          double took[2];
          for (const bool compared : {turn % 2 == 0, turn % 2 != 0})
            seconds[compared].push_back(took[compared] = seconds_of_call(c, from.slice(), to.slice(), compared));
          ratios.push_back(took[1] / took[0]);
        }
        if (world().rank() == 0)
          fmt::print("{:8} {:6} {:4} KiB: {:6.2f} µs, compared {:6.2f} µs, ratio {:.3f}\n", backend.name, algorithm,
                     count >> 8, median(seconds[0]) * 1e6, median(seconds[1]) * 1e6, median(ratios));
      }
    }
}

}  // namespace
}  // namespace chorale::test
