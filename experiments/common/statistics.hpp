// Computes the median of measured times with its interval, and tests whether two kinds of run differ.
//
// The calls of one launch (one start of the program) share memory pages, cores and the load of other programs. The steps of
// one run share these resources too. A thousand calls are therefore not independent: they describe one launch and say
// nothing about the next. A comparison therefore takes one value from each launch or each block. A block is a repetition in
// which all kinds of run were executed one after the other.
//
//   block        1      2      3      4      5      6         paired: other load slows both runs of a block
//   one          a1     a2     a3     a4     a5     a6
//   other        b1     b2     b3     b4     b5     b6        d = log(b / a), Student's t-test of mean(d) against 0
//
// Launches that did not alternate are not paired, and are compared by Welch's t-test. Fewer than six blocks are too few to
// tell whether two kinds differ.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace chorale {

struct Summary {
  double median = 0, ci_low = 0, ci_high = 0;
  double p5 = 0, p95 = 0, p99 = 0, max = 0;  // each is one of the samples; p99 is the maximum of up to 51 samples
  bool has_interval = true;                  // false with fewer than six samples: ci_low and ci_high are then the extremes
};

// The 95 % interval of the median is bounded by two order statistics. The number of samples below the true median is
// distributed like the number of heads in n tosses of a coin (Le Boudec, "Performance Evaluation", 2010). The interval
// assumes independent samples, but no particular distribution.
Summary summarize(std::vector<double> samples);

// The middle value, or the mean of the two middle values. There must be at least one.
double median_of(std::vector<double> samples);
double sum_of(const std::vector<double>& values);
// The element-wise mean of vectors of equal size. Empty if there are none.
std::vector<double> mean_of(const std::vector<std::vector<double>>& all);

// The typical time of a kind of call, with an interval that shows how well the calls determine it.
struct Typical {
  double seconds = 0, low = 0, high = 0;
};

// Computes the typical time of each kind from the calls of one launch: the median with its 95 % interval. If other programs
// use the cores, the times of calls have two modes, which can differ by a factor of a thousand. The median can then be in
// either mode. If the interval of any median spans more than a factor of three, the lower quartile of every kind is
// therefore its typical time. Other programs affect the lower quartile least. The interval is then the range of all calls.
std::vector<Typical> typical_times(const std::vector<std::vector<double>>& kinds);

inline constexpr std::size_t fewest_blocks = 6;  // with fewer blocks, no comparison is made
inline constexpr double significant = 0.05;      // a smaller p-value counts as a difference

// The results of one kind of run: one value per block. The key is the name of the block.
using ByBlock = std::map<std::string, double>;
Summary summarize(const ByBlock& blocks);

struct Contrast {
  std::size_t blocks = 0;  // number of pairs; if unpaired, the smaller number of launches
  bool paired = false;
  double ratio = 1, low = 1, high = 1;  // other / one: the geometric mean and its 95 % interval; NaN if unknown
  double p = 1;                         // two-sided p-value; NaN if unknown
  bool enough() const { return blocks >= fewest_blocks; }
};

// Pairs the blocks that have the same name. If no names are equal, the test is unpaired. If a value is not positive, the
// ratio is unknown.
Contrast contrast(const ByBlock& one, const ByBlock& other);

// Without any real difference, one comparison in twenty still has p < 0.05. Holm's correction (1979) raises the p-values of
// a family of comparisons, so that 95 % of such families contain no false difference. A NaN stays NaN, and is not counted as
// a comparison.
void correct_by_holm(std::vector<double>& p);

// The p-value of each kind's difference from the first kind, which was chosen because it has the best values. Because of
// this choice, the correction counts all pairs of kinds, not only the pairs with the first kind.
std::vector<double> p_from_the_first(const std::vector<ByBlock>& kinds);

// The p-value of the statement that the first kind is faster than all other kinds. This p-value needs no correction: the
// test against the nearest rival is valid although the first kind was chosen by its values (Hung & Fithian 2019).
double p_of_being_first(const std::vector<ByBlock>& kinds);

// Student's distribution with `freedom` degrees of freedom. t_tails: the two-sided tail probability P(|T| ≥ |t|). t_value:
// the t whose two-sided tail probability is p.
double t_tails(double t, double freedom);
double t_value(double p, double freedom);

// Returns the load imbalance of workers such as ranks: the maximum total work of a worker, divided by the mean total work.
// `places`: for each item of work, the index of the worker that did it.
double imbalance(const std::vector<double>& places, const std::vector<double>& work);

}  // namespace chorale
