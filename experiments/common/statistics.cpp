#include "experiments/common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "experiments/common/each.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Returns the number of samples below the interval. The same number of samples is above the interval. The result is the
// largest j with P(at most j heads in n coin tosses) ≤ 2.5 %; 0 if there is no such j.
std::size_t left_out(std::size_t n) {
  const auto tosses = static_cast<double>(n);
  double below = 0;
  for (std::size_t heads = 0; heads < n; ++heads) {
    const auto k = static_cast<double>(heads);
    below += std::exp(std::lgamma(tosses + 1) - std::lgamma(k + 1) - std::lgamma(tosses - k + 1) - tosses * std::log(2.0));
    if (below > 0.025) return heads == 0 ? 0 : heads - 1;
  }
  return 0;
}

// The regularized incomplete beta function by its continued fraction. The partial numerators come in pairs (DLMF 8.17.22):
//
//   I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) · 1 / (1 + d1 / (1 + d2 / (1 + …)))
//
// The fraction is evaluated from its innermost term outward. Its depth is chosen so that one more term would change no bit.
// For x < (a + 1) / (a + b + 2), a depth of a few times the square root of max(a, b) is enough. Larger x use the symmetry
// I_x(a, b) = 1 - I_(1-x)(b, a).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(1 - x, b, a);
  double fraction = 1;
  for (int m = 20 + static_cast<int>(6 * std::sqrt(std::max(a, b))); m >= 1; --m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1));
    fraction = 1 + odd / (1 + even / fraction);
  }
  const double log_front = a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  return std::exp(log_front) / (a * fraction);
}

struct Moments {
  double mean = 0, variance_of_mean = 0, freedom = 0;
};

Moments moments(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return {n > 0 ? values[0] : 0, 0, 0};
  const double mean = sum_of(values) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / (n - 1) / n, n - 1};
}

// Returns the difference of two means, with its variance and degrees of freedom (Welch 1947). The two variances can be
// unequal.
Moments difference(const Moments& one, const Moments& other) {
  const double v = one.variance_of_mean, w = other.variance_of_mean;
  const double freedom = v + w > 0 ? (v + w) * (v + w) / (v * v / one.freedom + w * w / other.freedom) : one.freedom;
  return {other.mean - one.mean, v + w, freedom};
}

std::vector<double> logs_of(const ByBlock& blocks) {
  return each(blocks, [](const auto& block) { return std::log(block.second); });
}

// The p-value of the t-test, which compares geometric means. If launches have two modes, geometric means and medians can
// disagree about which kind is faster. Returns 1 in this case, because tables are sorted by median and must not call the
// difference significant.
double p_as_medians_say(const ByBlock& one, const ByBlock& other) {
  const Contrast found = contrast(one, other);
  if (std::isnan(found.p)) return unknown;
  const bool is_more = summarize(other).median > summarize(one).median;
  return is_more == (found.ratio > 1) ? found.p : 1;
}

}  // namespace

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double median_of(std::vector<double> samples) { return summarize(std::move(samples)).median; }

std::vector<double> mean_of(const std::vector<std::vector<double>>& all) {
  std::vector<double> mean(all.empty() ? 0 : all.front().size(), 0);
  for (const auto& values : all)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / static_cast<double>(all.size());
  return mean;
}

Summary summarize(std::vector<double> samples) {
  require(!samples.empty(), "a series without samples has no median");
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size(), out = left_out(n);
  const auto quantile = [&](double part) {
    return samples[static_cast<std::size_t>(std::lround(part * static_cast<double>(n - 1)))];
  };
  return {(samples[(n - 1) / 2] + samples[n / 2]) / 2,
          samples[out],
          samples[n - 1 - out],
          quantile(0.05),
          quantile(0.95),
          quantile(0.99),
          samples.back(),
          n >= 6};
}

std::vector<Typical> typical_times(const std::vector<std::vector<double>>& kinds) {
  constexpr double widest = 3;  // if high / low of an interval exceeds this ratio, the median is too uncertain
  std::vector<Typical> times;
  bool settled = true;
  for (const std::vector<double>& calls : kinds) {
    const Summary found = summarize(calls);
    times.push_back({found.median, found.ci_low, found.ci_high});
    settled &= found.ci_high <= widest * found.ci_low;
  }
  if (settled) return times;
  times.clear();
  for (std::vector<double> calls : kinds) {
    std::sort(calls.begin(), calls.end());
    times.push_back({calls[(calls.size() - 1) / 4], calls.front(), calls.back()});
  }
  return times;
}

Summary summarize(const ByBlock& blocks) { return summarize(each(blocks, &ByBlock::value_type::second)); }

double t_tails(double t, double freedom) { return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5); }

double t_value(double p, double freedom) {
  double low = 0, high = 1;
  while (t_tails(high, freedom) > p) high *= 2;
  while (high - low > 1e-12 * high) {
    const double middle = (low + high) / 2;
    (t_tails(middle, freedom) > p ? low : high) = middle;
  }
  return high;
}

Contrast contrast(const ByBlock& one, const ByBlock& other) {
  ByBlock ratios;
  for (const auto& [name, value] : one)
    if (const auto partner = other.find(name); partner != other.end()) ratios[name] = partner->second / value;
  const bool paired = !ratios.empty();
  const Moments mean = paired ? moments(logs_of(ratios)) : difference(moments(logs_of(one)), moments(logs_of(other)));
  Contrast found{.blocks = paired ? ratios.size() : std::min(one.size(), other.size()), .paired = paired};
  found.ratio = found.blocks > 0 && std::isfinite(mean.mean) ? std::exp(mean.mean) : unknown;
  found.low = found.high = found.p = unknown;
  if (!found.enough() || std::isnan(found.ratio)) return found;
  const double error = std::sqrt(mean.variance_of_mean), wide = error * t_value(significant, mean.freedom);
  found.low = std::exp(mean.mean - wide);
  found.high = std::exp(mean.mean + wide);
  found.p = error > 0 ? t_tails(mean.mean / error, mean.freedom) : mean.mean == 0 ? 1 : 0;
  return found;
}

void correct_by_holm(std::vector<double>& p) {
  std::vector<std::size_t> rising;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) rising.push_back(i);
  std::sort(rising.begin(), rising.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  double least = 0;
  for (std::size_t i = 0; i < rising.size(); ++i) {
    least = std::max(least, std::min(1.0, static_cast<double>(rising.size() - i) * p[rising[i]]));
    p[rising[i]] = least;
  }
}

std::vector<double> p_from_the_first(const std::vector<ByBlock>& kinds) {
  std::vector<double> p;  // p-values of the pairs (0, 1), (0, 2), …, (1, 2), …
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::size_t j = i + 1; j < kinds.size(); ++j) p.push_back(p_as_medians_say(kinds[i], kinds[j]));
  correct_by_holm(p);
  p.insert(p.begin(), 1);  // the p-value of the first kind against itself
  p.resize(kinds.size());
  return p;
}

double p_of_being_first(const std::vector<ByBlock>& kinds) {
  double largest = 0;
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const double p = p_as_medians_say(kinds[0], kinds[i]);
    if (std::isnan(p)) return unknown;
    largest = std::max(largest, p);
  }
  return largest;
}

double imbalance(const std::vector<double>& places, const std::vector<double>& work) {
  require(!work.empty() && places.size() == work.size(), "{} places of {} pieces of work", places.size(), work.size());
  std::map<double, double> sums;
  for (std::size_t i = 0; i < work.size(); ++i) sums[places[i]] += work[i];
  double all = 0, most = 0;
  for (const auto& [place, sum] : sums) {
    all += sum;
    most = std::max(most, sum);
  }
  return all > 0 ? most * static_cast<double>(sums.size()) / all : 1;
}

}  // namespace chorale
