#include "experiments/report/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/common/each.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {

const std::vector<Criterion>& all_criteria() {
  static const std::vector<Criterion> criteria{
      {by_speed, "Speed", true, Unit::plain, 4, steady_steps("tokens_per_s")},
      {by_loss, "Held-out loss", false, Unit::plain, 5,
       [](const RecordedRun& run) {
         const double loss = held_out_loss(run);
         return std::isfinite(loss) ? std::vector{loss} : std::vector<double>{};
       }},
  };
  return criteria;
}

const std::vector<std::string>& metrics() {
  static const std::vector<std::string> names = names_of_rows(all_criteria());
  return names;
}

const Criterion& criterion_of(const RecordSet& records) {
  const auto named = [&](const Criterion& criterion) { return records.metric == criterion.name; };
  const auto found = std::ranges::find_if(all_criteria(), named);
  return found == all_criteria().end() ? all_criteria().front() : *found;
}

std::vector<std::vector<const RecordedRun*>> ranked(const RecordSet& records, const std::string& group) {
  const Criterion& criterion = criterion_of(records);
  const auto behind = [&](const std::vector<const RecordedRun*>& runs) {
    const ByBlock values = per_block(runs, criterion.samples);
    if (values.empty()) return std::numeric_limits<double>::infinity();
    return criterion.highest_is_best ? -summarize(values).median : summarize(values).median;
  };
  std::vector<std::pair<double, std::vector<const RecordedRun*>>> labels;
  for (auto& runs : records.labeled(group)) labels.emplace_back(behind(runs), std::move(runs));
  std::ranges::stable_sort(labels, {}, [](const auto& label) { return label.first; });
  std::vector<std::vector<const RecordedRun*>> ordered;
  for (auto& [value, runs] : labels) ordered.push_back(std::move(runs));
  return ordered;
}

}  // namespace chorale::report
