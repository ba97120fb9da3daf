// The options of `chorale plan`, and the settings that every request (question.hpp) derives from the options.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/common/hosts_option.hpp"
#include "experiments/plan/hosts.hpp"
#include "experiments/plan/snapshot_costs.hpp"
#include "experiments/plan/whole_training.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan/plan.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::plan {

struct AskedPlan {
  void declare(Options& options);
  // Determines the machine, the compute type and the hosts. Throws a usage error if the options contradict each other.
  void settle();

  bool on_one_host(const Layout& layout) const;  // whether all ranks share a host, as far as is known
  TrainingOptions options_on(const Layout& layout) const;
  // Returns the options for a plan in which it is unknown which ranks share a host.
  TrainingOptions unplaced_options_on(const Layout& layout) const;
  // Replaces "auto" backends and algorithms, sets the selector, and notes the assumption behind each replacement. With
  // --hosts, Hosts::place() replaces "auto" backends instead, because it chooses backends for each layout.
  void assume(PlanRequest& request);
  // Replaces "auto" for --prefetch-units, and returns a line that gives the reason; "" if a number was given. On
  // accelerators a run prefetches one unit, because the times of other choices cannot be predicted there.
  std::string settle_prefetch(PlanRequest& request) const;
  // The number of rows to show: the number in --rows, if it was given; otherwise `usual` rows in text, and all rows in other
  // formats.
  std::int64_t rows(std::int64_t usual) const;
  bool asks_for_rows() const { return options->origin("rows") != "default"; }
  bool in_text() const { return format == "text"; }
  std::string assumptions() const;  // as one line

  // The options.
  train::Flags flags;
  train::LayoutFlags layouts;
  HostsOption hosts;
  std::int64_t ranks = 0, most_rows = 24;
  std::optional<std::int64_t> memory_limit;
  bool longest_sequence = false, search = false;
  WholeTraining whole;
  SnapshotCosts snapshots;
  std::string machine, timeline, format = "text";
  std::vector<std::string> explain;
  std::string table, assumptions_file;  // no table if `table` is ""; the program's file if `assumptions_file` is ""

  // Set by settle().
  std::optional<System> system;  // the system of --machine, if it has accelerators
  std::optional<Hosts> places;   // if --hosts is given

 private:
  void assume_type();

  const Options* options = nullptr;  // the declared options, to find out whether the user gave a value
  std::vector<std::string> assumed;
};

}  // namespace chorale::plan
