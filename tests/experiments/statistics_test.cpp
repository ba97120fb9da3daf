#include "experiments/statistics.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using chorale::mann_whitney;
using chorale::summarize;

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
  CHECK((summarize({1, 2, 3, 4, 5, 6}).has_interval && !summarize({1, 2, 3, 4, 5}).has_interval));  // 1 − 2/2⁶ and 1 − 2/2⁵
  CHECK((summarize({7}).median == 7 && summarize({7}).p95 == 7));
}

TEST_CASE("Mann-Whitney gives the probabilities that R and SciPy print for their own examples") {
  // SciPy's manual: mannwhitneyu(males, females, method="exact"); R's: wilcox.test(x, y), whose one-sided p is 0.1272.
  CHECK(mann_whitney({19, 22, 16, 29, 24}, {20, 11, 17, 12}) == Approx(1.0 / 9).epsilon(1e-9));
  const std::vector<double> x{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, y{1.15, 0.88, 0.90, 0.74, 1.21};
  CHECK(mann_whitney(x, y) == Approx(0.2544).margin(5e-5));
  CHECK(mann_whitney(y, x) == Approx(mann_whitney(x, y)));
  CHECK(mann_whitney({1, 2, 3}, {4, 5, 6}) == Approx(0.1));  // two of twenty orders are as far apart
}

TEST_CASE("Mann-Whitney with ties, many samples, and none") {
  // Of the 126 ways to choose four of these nine, 15 have ranks that sum to no more than 14.5.
  CHECK(mann_whitney({1, 2, 2, 4}, {2, 3, 4, 5, 3}) == Approx(2 * 15.0 / 126).epsilon(1e-9));
  CHECK(mann_whitney({1, 1, 1}, {2, 2, 2}) == Approx(0.1));  // as without ties: a normal distribution would say 0.047
  CHECK(mann_whitney({5, 5, 5}, {5, 5}) == 1);
  CHECK(mann_whitney({}, {1, 2}) == 1);
  std::vector<double> low, high;
  for (int i = 0; i < 50; ++i) low.push_back(i), high.push_back(i + 10.5);
  CHECK(mann_whitney(low, high) == Approx(0.001209).margin(1e-6));
  CHECK(mann_whitney(low, low) == Approx(1));
  // U = 90 of 484 pairs; the variance 22·22/12 · (45 − (990 + 19656 + 336) / 1892) = 1367.7; z = (|U − 242| − 0.5) / 36.98
  std::vector<double> ones_and_twos(10, 1), twos_and_threes(15, 2);
  ones_and_twos.resize(22, 2), twos_and_threes.resize(22, 3);
  CHECK(mann_whitney(ones_and_twos, twos_and_threes) == Approx(4.194e-05).epsilon(1e-3));
}
