// Shows how evenly the router distributes tokens among experts. Each model has a heat map with one row per block that has
// experts. An expert's load is the number of tokens that chose it, divided by the mean over the experts of its block. 1 is
// perfect balance.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/statistics.hpp"
#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

struct Loads {
  std::string run;
  std::vector<std::string> blocks;            // the indices of these blocks in the model
  std::vector<std::vector<double>> of_block;  // indexed by expert
};

// The loads are medians over the rows of /experts after the warm-up, and then medians over the repetitions.
Loads loads_of(const std::vector<const RecordedRun*>& runs) {
  const RecordGroup group = runs.front()->group("experts");
  Loads loads{.run = runs.front()->label, .blocks = group.words("block")};
  const auto shape = group.shape("chosen");
  if (shape.size() != 2) return loads;
  const auto chosen =
      each_over_repetitions(runs, [](const RecordedRun& run) { return run.group("experts").medians("chosen"); });
  loads.of_block = in_rows(medians_of(chosen), static_cast<std::size_t>(shape[1]));
  for (std::vector<double>& block : loads.of_block) {
    const double mean = sum_of(block) / static_cast<double>(block.size());
    for (double& load : block) load = mean > 0 ? load / mean : 0;
  }
  return loads;
}

std::string times(double load) { return fmt::format("{:.2f} ×", load); }

// `most`: the load of the darkest color. This load is the same in all charts, so that charts can be compared.
CellChart chart_of(const Loads& loads, double most) {
  CellChart chart{.title = loads.run,
                  .description = "One row per block, one column per expert; darker cells were chosen by more tokens.",
                  .row_name = "block",
                  .column_name = "expert",
                  .rows = loads.blocks};
  for (std::size_t block = 0; block < loads.of_block.size(); ++block) {
    chart.cells.emplace_back();
    for (std::size_t expert = 0; expert < loads.of_block[block].size(); ++expert) {
      if (block == 0) chart.columns.push_back(fmt::format("{}", expert));
      const double load = loads.of_block[block][expert];
      chart.cells.back().push_back({fmt::format("{:.2f}", load),
                                    fmt::format("block {}, expert {}: {}", loads.blocks.at(block), expert, times(load)), "",
                                    load / most});
    }
  }
  chart.scale = {{0, "no token"}, {1 / most, "balanced"}, {1, times(most) + " its balanced share"}};
  return chart;
}

}  // namespace

std::optional<Figure> experts(const RecordSet& records) {
  Figure figure{.numbers = TextTable({"run", "block", "expert", "load"})};
  std::vector<Loads> runs;
  double most = 1, least = INFINITY;
  std::string most_loaded;
  for (const auto& same : records.labeled("experts")) {
    Loads loads = loads_of(same);
    for (std::size_t block = 0; block < loads.of_block.size(); ++block)
      for (std::size_t expert = 0; expert < loads.of_block[block].size(); ++expert) {
        const double load = loads.of_block[block][expert];
        figure.numbers.add({loads.run, loads.blocks.at(block), fmt::format("{}", expert), fmt::format("{:.4f}", load)});
        least = std::min(least, load);
        if (load < most) continue;
        most = load;
        most_loaded = fmt::format("expert {} of block {} ({})", expert, loads.blocks[block], loads.run);
      }
    if (!loads.of_block.empty()) runs.push_back(std::move(loads));
  }
  if (runs.empty()) return {};
  for (const Loads& loads : runs) figure.charts.push_back(drawing_of(chart_of(loads, most)));
  figure.finding = fmt::format("The most loaded is {}: {} its balanced share. The least loaded has {}.", most_loaded,
                               times(most), times(least));
  return figure;
}

}  // namespace chorale::report
