// The tables of `chorale plan` for one layout: memory, traffic, and data in a slow tier. Each stage has one or more rows. In
// text, equal rows of neighboring stages are merged: "1-14".
#pragma once
#include "experiments/plan/wording.hpp"
#include "parallel/plan/plan.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {

// A table whose first column is the stage.
class StageTable {
 public:
  using Rows = std::vector<std::vector<std::string>>;  // the cells except the stage
  StageTable(std::vector<std::string> columns, const Wording& as) : columns_(std::move(columns)), folds_(!as.plain()) {}
  void add(std::int64_t stage, const Rows& rows);  // call it with ascending stages
  TextTable table() const;

 private:
  struct Row {
    std::int64_t first, last;  // stages
    std::vector<std::string> cells;
  };
  std::vector<std::string> columns_;
  bool folds_;
  std::vector<Row> rows_;
};

StageTable memory_table(const Wording& as);
StageTable traffic_table(const Wording& as);
StageTable offloaded_table(const OffloadOptions& offload, const Wording& as);

StageTable::Rows memory_of(const RankPlan& plan, const Wording& as);
StageTable::Rows traffic_of(const RankPlan& plan, const Wording& as);
StageTable::Rows offloaded_by(const RankPlan& plan, UpdateTime update, const Wording& as);

}  // namespace chorale::plan
