#include "experiments/bench/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/error.hpp"

namespace chorale::bench {
namespace {

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

}  // namespace chorale::bench
