// What a series of times says: the median, where it lies with 95 % confidence, and how wide the series is.
//
// The interval needs no distribution: of n samples, j lie below the true median as heads fall in n tosses of a coin, so the interval
// between two order statistics covers it with a probability that can be counted (Le Boudec, "Performance Evaluation", 2010).
#pragma once
#include <vector>

namespace chorale::bench {

struct Summary {
  double median = 0, ci_low = 0, ci_high = 0;
  double p5 = 0, p95 = 0;
};

Summary summarize(std::vector<double> samples);  // fewer than six have no such interval: they give their extremes

}  // namespace chorale::bench
