#include "experiments/plan/stage_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace chorale::plan {

void StageTable::add(std::int64_t stage, const Rows& rows) {
  for (const std::vector<std::string>& cells : rows) {
    const auto like =
        std::ranges::find_if(rows_, [&](const Row& row) { return folds_ && row.last == stage - 1 && row.cells == cells; });
    if (like == rows_.end())
      rows_.push_back({stage, stage, cells});
    else
      like->last = stage;
  }
}

TextTable StageTable::table() const {
  std::vector<std::string> columns = columns_;
  columns.insert(columns.begin(), "stage");
  TextTable table(columns);
  for (const Row& row : rows_) {
    std::vector<std::string> cells = row.cells;
    cells.insert(cells.begin(),
                 row.first == row.last ? std::to_string(row.first) : fmt::format("{}-{}", row.first, row.last));
    table.add(cells);
  }
  return table;
}

StageTable memory_table(const Wording& as) {
  std::vector<std::string> columns{"parameters"};
  for (const char* held : {"params", "grads", "optimizer", "states", "activations", "comm", "workspace", "data", "peak"})
    columns.push_back(as.column(held, "bytes"));
  columns.emplace_back(as.plain() ? "flops" : "TFLOP");
  return {columns, as};
}

StageTable traffic_table(const Wording& as) {
  return {{"axis", "operation", "calls", as.plain() ? "sent_bytes" : "bytes"}, as};
}

StageTable offloaded_table(const OffloadOptions& offload, const Wording& as) {
  return {{"category", as.column(offload.to_host ? "on the host" : "in the file", "bytes"), as.column("read", "bytes"),
           as.column("written", "bytes"), as.column("exposed", "bytes")},
          as};
}

StageTable::Rows memory_of(const RankPlan& plan, const Wording& as) {
  const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
  const auto peak = [&](Category c) { return as.bytes(plan.peak[static_cast<std::size_t>(c)]); };
  const std::int64_t states = held(Category::params) + held(Category::grads) + held(Category::optimizer);
  return {{std::to_string(plan.parameters), as.bytes(held(Category::params)), as.bytes(held(Category::grads)),
           as.bytes(held(Category::optimizer)), as.bytes(states), peak(Category::activations), peak(Category::comm),
           peak(Category::workspace), peak(Category::data), as.bytes(plan.peak_bytes),
           as.number(plan.flops / (as.plain() ? 1 : 1e12))}};
}

StageTable::Rows traffic_of(const RankPlan& plan, const Wording& as) {
  StageTable::Rows rows;
  for (const auto& [axis, account] : plan.axes)
    for (std::size_t i = 0; i < operations; ++i)
      if (const Account::Entry& entry = account.entries[i]; entry.calls > 0)
        rows.push_back({axis, operation_name(i), std::to_string(entry.calls), as.bytes(entry.bytes)});
  return rows;
}

StageTable::Rows offloaded_by(const RankPlan& plan, UpdateTime update, const Wording& as) {
  TierTraffic all = plan.tier_passes;
  all.add(plan.tier_updates, 1);
  const TierTraffic exposed = exposed_part(plan.tier_updates, update);
  StageTable::Rows rows;
  for (std::size_t c = 0; c < categories; ++c)
    if (plan.offloaded[c] + all.read[c] + all.written[c] > 0)
      rows.push_back({category_names[c], as.bytes(plan.offloaded[c]), as.bytes(all.read[c]), as.bytes(all.written[c]),
                      as.bytes(exposed.read[c] + exposed.written[c])});
  return rows;
}

}  // namespace chorale::plan
