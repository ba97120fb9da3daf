// The tables of `chorale plan` for one layout, with a row or a few rows for each stage: memory, traffic, and what lives in a
// slow tier.
#pragma once
#include "parallel/plan.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {

TextTable memory_table();
TextTable traffic_table();
TextTable offloaded_table(const OffloadOptions& offload);

void add_memory(TextTable& table, std::int64_t stage, const RankPlan& plan);
void add_traffic(TextTable& table, std::int64_t stage, const RankPlan& plan);
void add_offloaded(TextTable& table, std::int64_t stage, const RankPlan& plan, UpdateTime update);

}  // namespace chorale::plan
