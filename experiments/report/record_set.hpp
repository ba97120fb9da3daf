// Reads the records of a report into one list of runs. A file has one or more runs, and a run has HDF5 groups of tables:
//
//   run.h5      one run: its groups are at the root               /train, /phases, /config …
//   suite.h5    a suite: each run has a folder of groups          /runs/<id>/train …
//   bench.h5    with --launches: each launch is a run             /runs/launch-1/series …
//   rows.csv    rows not measured by chorale: csv_rows.hpp        outside.csv in a record's folder is read with the record
//
// Runs with the same label (labels.hpp) are repetitions of each other. If the metric is the loss, runs that differ only in
// their seed are repetitions too (metric.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/common/parse_number.hpp"
#include "experiments/report/metric.hpp"
#include "src/record/reader.hpp"
#include "src/record/table.hpp"

namespace chorale::report {

// The first steps of a run are its warm-up. Warm-up steps are excluded from speeds, because caches, pages and connections
// are still cold. The number of these steps is set by --warm-up, or otherwise by the suite. By default (by_rule), the
// warm-up is a tenth of the steps, at most ten. If a run ended during its warm-up, no steps are excluded.
inline constexpr std::int64_t by_rule = -1;
std::int64_t warm_up_of(std::int64_t steps, std::int64_t warm_up = by_rule);  // number of steps excluded
// Removes the warm-up steps, unless there are no later steps. Then removes all values that are not finite.
std::vector<double> after_warm_up(std::vector<double> of_steps, std::int64_t warm_up = by_rule);

// The variables of one group of a run; empty if the run lacks the group.
class RecordGroup {
 public:
  using Variables = std::vector<Variable>;
  RecordGroup() = default;
  RecordGroup(Variables variables, std::int64_t warm_up)
      : variables_(std::make_shared<const Variables>(std::move(variables))), warm_up_(warm_up) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }
  std::vector<double> numbers(const std::string& name) const;  // row-major; NaN for cells that are not numbers
  std::vector<std::string> words(const std::string& name) const;
  // The sizes of a variable's dimensions, without the dimension of steps: {ranks, phases}.
  std::vector<std::int64_t> shape(const std::string& name) const;
  // For each element of this shape, in row-major order, returns the median over the steps after the warm-up. A variable
  // without a dimension of steps is returned unchanged.
  std::vector<double> medians(const std::string& name) const;

 private:
  const Variable* find(const std::string& name) const;
  std::shared_ptr<const Variables> variables_ = std::make_shared<const Variables>();  // shared by copies
  std::int64_t warm_up_ = by_rule;
};

// The rows of a table. A column that the record lacks, and a cell that its type does not allow, leave the row's default.
template <class Row>
std::vector<Row> rows_of(const RecordGroup& group) {
  std::vector<Row> rows;
  each_column<Row>([&](const auto& field) {
    using Value = std::remove_cvref_t<decltype(std::declval<Row&>().*field.member)>;
    const std::vector<std::string> cells = group.words(field.column.name);
    if (rows.empty()) rows.resize(cells.size());
    for (std::size_t i = 0; i < std::min(rows.size(), cells.size()); ++i) {
      Value& value = rows[i].*field.member;
      if constexpr (std::is_same_v<Value, std::string>)
        value = cells[i];
      else if (const std::size_t label = label_of(field.column, cells[i]); label < field.column.labels.size())
        value = static_cast<Value>(label);
      else if (const auto number = parse_number(cells[i]);
               number && (std::isfinite(*number) || std::is_same_v<Value, double>))
        value = static_cast<Value>(*number);
    }
  });
  return rows;
}

struct RecordSource {
  Reader reader;
  std::vector<std::string> groups;  // the paths of all groups in the file, cached because listing them is slow
  std::int64_t warm_up = by_rule;

  mutable std::map<std::string, RecordGroup> read = {};  // key: the path. Figures read the same groups repeatedly

  RecordGroup group(const std::string& path) const;  // empty if the file lacks it
};

inline constexpr const char* another_program = "another program";  // the command of runs that are not runs of chorale

struct RecordedRun {
  std::string id, label, layout, command, status;
  std::string launch, block;  // names of the run's launch, and of its repetition in this launch: see blocks.hpp
  std::map<std::string, std::string> attributes, settings;
  std::map<std::string, std::string> differing;         // the settings in which the runs of this command differ: "warm-up 3"
  std::shared_ptr<const RecordSource> source;           // null for a row of a CSV file
  std::map<std::string, std::vector<Variable>> tables;  // the tables of a CSV row, by group
  std::string prefix;                                   // prefix of the run's group paths: "" or "/runs/<id>"

  bool has(const std::string& group) const;
  RecordGroup group(const std::string& name) const;                // "train"
  RecordGroup root() const;                                        // the run's own variables, such as its layout
  std::vector<double> steady(std::vector<double> of_steps) const;  // the values after the warm-up
  std::vector<double> steady(const char* column) const { return steady(group("train").numbers(column)); }  // of /train
  std::int64_t ranks() const;
  // Whether the run is in virtual time, on a machine that need not exist: the same input then always gives the same values.
  bool simulated() const { return has("simulated"); }
  // Whether the record is that of a launch, with the steps of all starts of the run (launch_events.hpp).
  bool launched() const { return has("events"); }
  std::string setting(const std::string& key) const;     // "" if it is not set
  std::string attribute(const std::string& name) const;  // "" if the record lacks it
};

struct RecordSet {
  std::vector<std::string> files;
  std::vector<std::string> questions;  // the questions of the suites, which are used as titles
  std::string metric = by_speed;       // the metric that ranks training runs (metric.hpp)
  bool metric_is_told = false;         // whether the suite or the user named the metric; otherwise the settings chose it
  std::vector<RecordedRun> runs;

  // The runs that have this group, grouped by label, in the order of the files.
  std::vector<std::vector<const RecordedRun*>> labeled(const std::string& group) const;
  std::map<std::string, std::string> common_settings() const;  // the settings that are equal in all runs
  std::set<std::string> differing_settings() const;            // the settings in which the training runs differ
};

// `metric`: one of metrics(), or by_settings.
RecordSet read_records(const std::vector<std::string>& files, std::int64_t warm_up = by_rule,
                       const std::string& metric = by_settings);

}  // namespace chorale::report
