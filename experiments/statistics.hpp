// What a series of times says: the median, where it lies with 95 % confidence, and how wide the series is; and whether two series
// differ by more than chance would have it. Neither needs to know how times are distributed.
//
//   interval        of n samples, j lie below the true median as heads fall in n tosses of a coin, so the interval between two order
//                   statistics covers it with a probability that can be counted (Le Boudec, "Performance Evaluation", 2010)
//   mann_whitney    of all pairs, one from each series, in how many the first is larger: were both of one kind, every order of all
//                   samples would be as likely as any other, which can be counted as well (Mann & Whitney 1947)
#pragma once
#include <vector>

namespace chorale {

struct Summary {
  double median = 0, ci_low = 0, ci_high = 0;
  double p5 = 0, p95 = 0;
  bool has_interval = true;  // fewer than six samples have none of 95 %: they give their extremes
};

Summary summarize(std::vector<double> samples);

// How probable a difference at least this large would be, either way, if there were none. Counted for up to 20 samples each, by
// the normal distribution beyond; 1 where a series is empty.
double mann_whitney(const std::vector<double>& one, const std::vector<double>& other);

inline constexpr double significant = 0.05;  // what is less probable than this is taken for a difference

}  // namespace chorale
