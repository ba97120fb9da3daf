#include "experiments/bench/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "collectives/choice/selection.hpp"
#include "collectives/prediction/prediction.hpp"
#include "experiments/bench/prediction_errors.hpp"
#include "experiments/bench/tables.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/simulated.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {

std::string how_to_read(const Rows& rows) {
  std::string notes;
  if (shows_ranges(rows)) notes += "# where ± exceeds 100 % of the time, the column shows the interval itself, in us\n";
  const bool has_ceilings = std::ranges::any_of(rows, [](const SeriesRow& row) { return !std::isnan(row.ceiling); });
  if (has_ceilings && shows_predictions(rows))
    notes +=
        "# ceiling: the same loads and stores without waits, timed apart. A call can be\n"
        "#   faster if it finds other data in the caches, or other load on the cores\n";
  if (is_beside(rows))
    notes +=
        "# beside: the operation while each rank multiplies matrices, and polls after each product. products: as many\n"
        "#   products alone. slower: these beside the operation. hidden: 100 % if both together take no longer than the\n"
        "#   longer of them, 0 % if they take as long as one after the other\n";
  return notes;
}

std::string limits(const Rows& rows, std::int64_t processes) {
  std::string notes;
  std::set<std::string> unmeasured;
  for (const SeriesRow& row : rows)
    if (!std::isnan(row.predicted) && !row.calibrated) unmeasured.insert(row.backend);
  const std::vector<std::string> names(unmeasured.begin(), unmeasured.end());
  if (!names.empty() && shows_predictions(rows))
    notes += fmt::format("# predicted: {}, by the typical prices of {}; to measure them here: {}\n", not_calibrated,
                         join(names, ", "), command_on(processes, "tune --calibrate --backend " + join(names, ",")));
  const auto has_no_price = [](const SeriesRow& row) {
    return (row.groups > 1 || row.products > 0) && !row.calibrated && row.algorithm != "native" &&
           row.ranks * row.groups <= prediction::most_ranks;
  };
  if (const auto row = std::ranges::find_if(rows, has_no_price); row != rows.end())
    notes += fmt::format("# {} predicted only by prices measured here: {}\n",
                         row->products > 0 ? "products beside an operation are" : "several groups are",
                         command_on(processes, "tune --calibrate --backend " + row->backend));
  notes += prediction_errors(rows);
  if (std::ranges::any_of(rows, [](const SeriesRow& row) { return row.ranks == 1; }))
    notes += fmt::format(
        "# busbw is 0: it counts the bytes that cross a link between two ranks, and one rank sends nothing.\n"
        "# So it has no algbw and no ceiling either; to use two ranks: {}\n",
        command_on(2, "bench …"));
  return notes;
}

std::string origins(const Rows& rows, const Machine& here) {
  std::set<std::string> all;
  for (const SeriesRow& row : rows) {
    if (!row.calibrated || (std::isnan(row.predicted) && !is_simulated(row.backend))) continue;
    const Machine machine = is_simulated(row.backend) ? machine_named(simulated_machine(row.backend)) : here;
    const auto ranks = static_cast<int>(row.ranks * row.groups), hosts = static_cast<int>(row.hosts);
    const Level* const level = prediction::nearest(machine, row.backend, hosts > 1 ? "network" : "host", ranks, hosts);
    all.insert(machine.system ? origin_of(*machine.system) : level ? origin_of(machine, *level) : machine.file);
  }
  return all.empty() ? "" : fmt::format("# predicted by {}\n", fmt::join(all, "\n#   and by "));
}

std::string disturbed(const std::string& warning) { return warning.empty() ? "" : fmt::format("# {}\n", warning); }

}  // namespace chorale::bench
