#include "experiments/bench/statistics.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using chorale::bench::summarize;

TEST_CASE("medians, and their intervals from the tables of order statistics") {
  std::vector<double> samples;
  for (int i = 1; i <= 100; ++i) samples.push_back(i);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(1));
  const auto s = summarize(samples);
  CHECK((s.median == 50.5 && s.ci_low == 40 && s.ci_high == 61));  // the 40th and the 61st of 100, as tables say
  CHECK((s.p5 == 6 && s.p95 == 95));
  samples.resize(0);
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  CHECK((summarize(samples).ci_low == 6 && summarize(samples).ci_high == 15));
  CHECK((summarize({3, 1, 2}).median == 2 && summarize({3, 1, 2}).ci_low == 1 && summarize({3, 1, 2}).ci_high == 3));
  CHECK((summarize({7}).median == 7 && summarize({7}).p95 == 7));
}
