#include "experiments/bench/winner.hpp"

#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::bench;

namespace {

// Returns a series of twenty calls whose times are between `least` and `most` µs.
Series series_of(const char* algorithm, double least, double most) {
  Series one{.row = {.backend = "shm", .algorithm = algorithm, .ranks = 2, .count = 1024}};
  for (int call = 0; call < 20; ++call) one.slowest.push_back(1e-6 * (least + (most - least) * call / 19));
  return one;
}

const Choice usual{.algorithm = "direct"};

}  // namespace

TEST_CASE("a tuned algorithm is the usual one, unless another is faster by more than chance") {
  const Series direct = series_of("direct", 1.0, 1.4), near = series_of("one_shot", 0.9, 1.3),
               fast = series_of("ring", 0.5, 0.6);
  const Tuned kept = winner_of({&near, &direct}, usual);
  CHECK((kept.algorithm == "direct" && kept.runner_up == "one_shot" && kept.bytes == 4096));
  CHECK(kept.ratio < 1);
  CHECK(kept.ratio_high > 1);
  CHECK(kept.why().ends_with(", within the noise: the usual one stays"));
  const Tuned changed = winner_of({&near, &direct, &fast}, usual);
  CHECK((changed.algorithm == "ring" && changed.runner_up == "one_shot" && changed.ratio_low > 1));
  CHECK(winner_of({&near, &fast}, usual).algorithm == "ring");  // the usual algorithm was not measured
  CHECK(winner_of({&near}, usual).why().ends_with(", and nothing else fits"));
  const Tuned led = winner_of({&near, &direct}, {.algorithm = "one_shot"});
  CHECK((led.algorithm == "one_shot" && led.why().ends_with(", within the noise")));
}
