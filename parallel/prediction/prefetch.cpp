#include "parallel/prediction/prefetch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/plan/room.hpp"
#include "parallel/prediction/cpu_step.hpp"

namespace chorale {

std::string PrefetchChoice::in_words() const {
  return why.empty() ? "" : fmt::format("ZeRO-3 gathers {} unit{} ahead: {}", units, units > 1 ? "s" : "", why);
}

PrefetchChoice fewest_units_ahead(PlanRequest request) {
  const Layout& layout = request.layout;
  TrainingOptions& options = request.options;
  if (layout.zero < 3) return {};
  if (layout.zero_ranks() == 1) return {1, "one rank has all shards, so nothing is gathered"};
  // Two micro-batches per stage are enough for the prediction: both passes occur, and gathers for other micro-batches occur
  // between them.
  options.batch.global = std::min(options.batch.global, 2 * layout.stages() * layout.replicas() * options.batch.micro);
  std::vector<std::pair<std::int64_t, double>> times;
  for (const std::int64_t units : {1, 2, 4, 8}) {
    options.replicas.prefetch_units = units;
    if (units > 1 && options.memory.limit > 0 && !has_room(layout, [&](const Layout&) { return options; })) break;
    const PredictedCpuStep predicted = predict_cpu_step(request);
    if (!predicted) return {1, predicted.why_not};
    times.emplace_back(units, predicted.time.seconds);
  }
  const auto seconds = [](const auto& pair) { return pair.second; };
  const double fastest = std::ranges::min(times, {}, seconds).second;
  const auto chosen = std::ranges::find_if(times, [&](const auto& pair) { return pair.second <= 1.01 * fastest; });
  return {chosen->first, fmt::format("predicted to take {:.3f} of the time with 1", chosen->second / times.front().second)};
}

}  // namespace chorale
