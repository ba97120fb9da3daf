#include "experiments/train/attention_balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace chorale::train {
namespace {

double imbalance(const std::vector<double>& work) {
  const double sum = std::accumulate(work.begin(), work.end(), 0.0);
  return sum > 0 ? std::ranges::max(work) * static_cast<double>(work.size()) / sum : 1;
}

}  // namespace

void report_attention_balance(RunRecord& run, const Training& training) {
  const Layout& layout = training.mesh().layout();
  if (layout.context_ranks() == 1 || training.options().device) return;
  const std::vector<AttentionWork> works = exchange(training.mesh().world(), training.attention_work());
  if (!run.recorder) return;
  std::vector<double> pairs, seconds;
  std::vector<double> pairs_along(static_cast<std::size_t>(layout.context_ranks())), seconds_along(pairs_along);
  const std::size_t row = row_of(*layout.axes, "cp");
  for (std::size_t rank = 0; rank < works.size(); ++rank) {
    pairs.push_back(works[rank].pairs), seconds.push_back(works[rank].seconds);
    const auto place = static_cast<std::size_t>(coordinates_of(layout, static_cast<std::int64_t>(rank))[row]);
    pairs_along[place] += works[rank].pairs, seconds_along[place] += works[rank].seconds;
  }
  run.recorder->numbers("ranks", "attention_pairs", {"rank"}, pairs, "1",
                        "pairs of a query and a key that it sees, per head");
  run.recorder->numbers("ranks", "attention_seconds", {"rank"}, seconds, "s", "processor time of attention");
  const ContextOptions& context = training.options().context;
  run.log.info(
      "attention, {} by {}: the busiest of {} context ranks has {:.3f} times the mean work, and took {:.3f} times the mean "
      "time",
      context.cut, context.scheme, layout.context_ranks(), imbalance(pairs_along), imbalance(seconds_along));
}

}  // namespace chorale::train
