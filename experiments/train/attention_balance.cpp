#include "experiments/train/attention_balance.hpp"

#include "experiments/common/statistics.hpp"

namespace chorale::train {

void report_attention_balance(RunRecord& run, const Training& training) {
  const Layout& layout = training.mesh().layout();
  if (layout.context_ranks() == 1 || training.options().kernels.device) return;
  const std::vector<AttentionWork> works = exchange(training.mesh().world(), training.attention_work());
  if (!run.recorder) return;
  std::vector<double> places, pairs, seconds;
  for (std::size_t rank = 0; rank < works.size(); ++rank) {
    places.push_back(static_cast<double>(context_rank_of(layout, static_cast<std::int64_t>(rank))));
    pairs.push_back(works[rank].pairs);
    seconds.push_back(works[rank].seconds);
  }
  run.recorder->numbers("ranks", "attention_pairs", {"rank"}, pairs, "1",
                        "pairs of a query and a key that it sees, per head");
  run.recorder->numbers("ranks", "attention_seconds", {"rank"}, seconds, "s",
                        "processor time of the first thread in attention");
  run.log.result(
      "attention, {} by {}: the busiest of {} context ranks has {:.3f} times the mean work, and took {:.3f} times the mean "
      "time",
      training.cut().row().name, training.options().context.scheme->name, layout.context_ranks(), imbalance(places, pairs),
      imbalance(places, seconds));
}

}  // namespace chorale::train
