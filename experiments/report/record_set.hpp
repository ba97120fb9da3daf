// The records that a report is made of: several files, each of one run or of a suite of them, read into one list of runs.
//
//   run.h5      its groups stand at the root            /train, /phases, /config …
//   suite.h5    each run's groups below one of its own  /runs/<id>/train …
//
//   bench.h5    with --launches: each launch's           /runs/launch-1/series …
//
// Runs are told apart by what they do not have in common: the label of a run is its layout and those of its settings that
// differ between the runs of its command. Runs of one label are repetitions of each other.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/record/reader.hpp"

namespace chorale::report {

// Steps that are left out where speed is told, as caches, pages and connections are new in them: as many as the reader says
// or, failing that, the suite; else a tenth of them, ten at most.
inline constexpr std::int64_t by_rule = -1;
// Without these steps, unless there are no others, and without what is no number.
std::vector<double> after_warm_up(std::vector<double> of_steps, std::int64_t warm_up = by_rule);

// The variables of one group of a run; a group that the run does not have is empty.
class Group {
 public:
  Group() = default;
  Group(std::vector<Variable> variables, std::int64_t warm_up) : variables_(std::move(variables)), warm_up_(warm_up) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }
  std::vector<double> numbers(const std::string& name) const;  // row-major; NaN for what is no number
  std::vector<std::string> words(const std::string& name) const;
  // The last of a variable's dimensions but the first, or all of them where it has no rows: {ranks, phases}.
  std::vector<std::int64_t> shape(const std::string& name) const;
  // Of each place along these, over the rows that are not a warm-up: the median, or its whole numbers where there are no
  // rows.
  std::vector<double> medians(const std::string& name) const;

 private:
  const Variable* find(const std::string& name) const;
  std::vector<Variable> variables_;
  std::int64_t warm_up_ = by_rule;
};

struct Source {
  Reader reader;
  std::vector<std::string> groups;  // all that the file has: to find them is slow
  std::int64_t warm_up = by_rule;
};

struct Run {
  std::string id, label, layout, command, status;
  std::string launch, block;  // which launch it was part of, and which repetition in it: see blocks.hpp
  std::map<std::string, std::string> attributes, settings;
  std::shared_ptr<const Source> source;
  std::string prefix;  // of its groups: "", or "/runs/<id>"

  bool has(const std::string& group) const;
  Group group(const std::string& name) const;  // "train"
  std::vector<double> steady(std::vector<double> of_steps) const;
  std::int64_t ranks() const;
  std::string setting(const std::string& key) const;  // "" where it has none
};

struct RecordSet {
  std::vector<std::string> files;
  std::vector<std::string> questions;  // that the suites ask
  std::vector<Run> runs;

  // Of each label that has such a group, its runs, in the order in which they stand in the files.
  std::vector<std::vector<const Run*>> labelled(const std::string& group) const;
  std::map<std::string, std::string> common_settings() const;
};

bool tells_runs_apart(const std::string& setting);  // where a run is kept, and what it prints, does not

RecordSet read_records(const std::vector<std::string>& files, std::int64_t warm_up = by_rule);

}  // namespace chorale::report
