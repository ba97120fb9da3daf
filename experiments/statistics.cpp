#include "experiments/statistics.hpp"

#include <algorithm>
#include <cmath>

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

// Orders of n and m samples, by the number u of pairs that stand the wrong way around. The last of an order is one of the n, and then
// it stands behind all m, or one of the m.
std::vector<double> orders_by_pairs(std::size_t n, std::size_t m) {
  std::vector<std::vector<double>> ways(m + 1, std::vector<double>(n * m + 1, 0));  // for the first i of n, by m
  for (auto& none : ways) none[0] = 1;
  for (std::size_t i = 1; i <= n; ++i)
    for (std::size_t j = 1; j <= m; ++j)
      for (std::size_t u = n * m + 1; u-- > 0;) ways[j][u] = (u >= j ? ways[j][u - j] : 0) + ways[j - 1][u];
  return ways[m];
}

double counted(std::size_t n, std::size_t m, double pairs) {
  const std::vector<double> ways = orders_by_pairs(n, m);
  double all = 0, below = 0, above = 0;
  for (std::size_t u = 0; u < ways.size(); ++u) {
    all += ways[u];
    if (static_cast<double>(u) <= pairs) below += ways[u];
    if (static_cast<double>(u) >= pairs) above += ways[u];
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
  return {(samples[(n - 1) / 2] + samples[n / 2]) / 2, samples[out], samples[n - 1 - out], quantile(0.05), quantile(0.95)};
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

  const auto n = static_cast<double>(one.size()), m = static_cast<double>(other.size());
  double ranks = 0, ties = 0;  // of the first series, those that tie sharing theirs; of each tie t³ − t
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].value == all[begin].value) ++end;
    const auto tied = static_cast<double>(end - begin), shared = static_cast<double>(begin + end + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks += all[i].first ? shared : 0;
    ties += tied * tied * tied - tied;
  }
  const double pairs = ranks - n * (n + 1) / 2;
  if (ties == 0 && std::max(one.size(), other.size()) <= most_counted) return counted(one.size(), other.size(), pairs);

  const double variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)));
  if (variance <= 0) return 1;  // all are equal
  const double away = std::max(0.0, std::abs(pairs - n * m / 2) - 0.5) / std::sqrt(variance);
  return std::erfc(away / std::sqrt(2.0));
}

}  // namespace chorale
