#include "experiments/plan/stage_tables.hpp"

#include <fmt/format.h>

#include "experiments/plan/candidates.hpp"

namespace chorale::plan {

TextTable memory_table() {
  return TextTable({"stage", "parameters", "params", "grads", "optimizer", "states", "activations", "comm", "workspace",
                    "data", "peak", "TFLOP"});
}

TextTable traffic_table() { return TextTable({"stage", "axis", "operation", "calls", "bytes"}); }

TextTable offloaded_table(const OffloadOptions& offload) {
  return TextTable({"stage", "category", offload.to_host ? "on the host" : "in the file", "read", "written", "exposed"});
}

void add_memory(TextTable& table, std::int64_t stage, const RankPlan& plan) {
  const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
  const auto peak = [&](Category c) { return decimal_bytes(plan.peak[static_cast<std::size_t>(c)]); };
  const std::int64_t states = held(Category::params) + held(Category::grads) + held(Category::optimizer);
  table.add({std::to_string(stage), std::to_string(plan.parameters), decimal_bytes(held(Category::params)),
             decimal_bytes(held(Category::grads)), decimal_bytes(held(Category::optimizer)), decimal_bytes(states),
             peak(Category::activations), peak(Category::comm), peak(Category::workspace), peak(Category::data),
             decimal_bytes(plan.peak_bytes), fmt::format("{:.4g}", plan.flops / 1e12)});
}

void add_traffic(TextTable& table, std::int64_t stage, const RankPlan& plan) {
  for (const auto& [axis, account] : plan.axes)
    for (std::size_t i = 0; i < operations; ++i)
      if (const Account::Entry& entry = account.entries[i]; entry.calls > 0)
        table.add({std::to_string(stage), axis, operation_name(i), std::to_string(entry.calls), decimal_bytes(entry.bytes)});
}

void add_offloaded(TextTable& table, std::int64_t stage, const RankPlan& plan, UpdateTime update) {
  TierTraffic all = plan.tier_passes;
  all.add(plan.tier_updates, 1);
  const TierTraffic exposed = exposed_part(plan.tier_updates, update);
  for (std::size_t c = 0; c < categories; ++c)
    if (plan.offloaded[c] + all.read[c] + all.written[c] > 0)
      table.add({std::to_string(stage), category_names[c], decimal_bytes(plan.offloaded[c]), decimal_bytes(all.read[c]),
                 decimal_bytes(all.written[c]), decimal_bytes(exposed.read[c] + exposed.written[c])});
}

}  // namespace chorale::plan
