#include "experiments/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr std::size_t most_counted = 20;

// How many samples may be left out at each end: the largest j for which j heads or fewer come in at most 2.5 % of cases.
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

// In how many ways n of these ranks can be chosen, by their sum.
std::vector<double> choices_by_sum(const std::vector<std::size_t>& ranks, std::size_t n) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0));  // by how many are chosen of those so far
  ways[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t chosen = n; chosen > 0; --chosen)
      for (std::size_t sum = most; sum >= rank; --sum) ways[chosen][sum] += ways[chosen - 1][sum - rank];
  return ways[n];
}

double counted(const std::vector<std::size_t>& ranks, std::size_t n, std::size_t of_first) {
  const std::vector<double> ways = choices_by_sum(ranks, n);
  double all = 0, below = 0, above = 0;
  for (std::size_t sum = 0; sum < ways.size(); ++sum) {
    all += ways[sum];
    if (sum <= of_first) below += ways[sum];
    if (sum >= of_first) above += ways[sum];
  }
  return std::min(1.0, 2 * std::min(below, above) / all);
}

}  // namespace

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
          n >= 6};
}

double mann_whitney(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.empty() || other.empty()) return 1;
  struct Sample {
    double value;
    bool first;
  };
  std::vector<Sample> all;
  for (const double value : one) all.push_back({value, true});
  for (const double value : other) all.push_back({value, false});
  std::sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.value < b.value; });

  std::vector<std::size_t> doubled;  // ranks, those that tie sharing theirs: twice a rank is a whole number
  std::size_t of_first = 0;
  double ties = 0;  // of each tie t³ − t
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].value == all[begin].value) ++end;
    const auto tied = static_cast<double>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      doubled.push_back(begin + end + 1);
      of_first += all[i].first ? doubled.back() : 0;
    }
    ties += tied * tied * tied - tied;
  }
  if (std::max(one.size(), other.size()) <= most_counted) return counted(doubled, one.size(), of_first);

  const auto n = static_cast<double>(one.size()), m = static_cast<double>(other.size());
  const double pairs = static_cast<double>(of_first) / 2 - n * (n + 1) / 2;
  const double variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)));
  if (variance <= 0) return 1;  // all are equal
  const double away = std::max(0.0, std::abs(pairs - n * m / 2) - 0.5) / std::sqrt(variance);
  return std::erfc(away / std::sqrt(2.0));
}

}  // namespace chorale
