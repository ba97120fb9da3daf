#include "experiments/report/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/each.hpp"
#include "experiments/report/chart.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

ByBlock medians_by(std::string RecordedRun::*name, const std::vector<const RecordedRun*>& runs, const Samples& samples) {
  std::map<std::string, std::vector<double>> medians;
  for (const RecordedRun* run : runs)
    if (const std::vector<double> measured = samples(*run); !measured.empty())
      medians[run->*name].push_back(summarize(measured).median);
  ByBlock blocks;
  for (const auto& [block, values] : medians) blocks[block] = summarize(values).median;
  return blocks;
}

}  // namespace

ByBlock per_block(const std::vector<const RecordedRun*>& runs, const Samples& samples) {
  return medians_by(&RecordedRun::block, runs, samples);
}

ByBlock per_launch(const std::vector<const RecordedRun*>& runs, const Samples& samples) {
  return medians_by(&RecordedRun::launch, runs, samples);
}

Summary spread_of(const std::vector<const RecordedRun*>& runs, const Samples& samples) {
  return runs.size() == 1 ? summarize(samples(*runs.front())) : summarize(per_block(runs, samples));
}

std::vector<Summary> each_over_repetitions(const std::vector<const RecordedRun*>& runs, const Samples& numbers) {
  std::map<const RecordedRun*, std::vector<double>> of_run;
  std::size_t count = 0;
  for (const RecordedRun* run : runs) {
    of_run[run] = numbers(*run);
    if (count == 0) count = of_run[run].size();
  }
  std::vector<Summary> all(count, {.median = absent, .ci_low = absent, .ci_high = absent});
  for (std::size_t i = 0; i < count; ++i) {
    const ByBlock blocks = per_block(runs, [&](const RecordedRun& run) {
      const std::vector<double>& own = of_run[&run];
      return own.size() == count && std::isfinite(own[i]) ? std::vector{own[i]} : std::vector<double>{};
    });
    if (!blocks.empty()) all[i] = summarize(blocks);
  }
  return all;
}

Summary over_repetitions(const std::vector<const RecordedRun*>& runs,
                         const std::function<double(const RecordedRun&)>& number) {
  return each_over_repetitions(runs, [&](const RecordedRun& run) { return std::vector{number(run)}; }).at(0);
}

std::vector<double> medians_of(const std::vector<Summary>& summaries) { return each(summaries, &Summary::median); }

std::string spread_name(bool one_run, bool has_interval, const std::string& samples) {
  const std::string kind = has_interval ? "95 % interval" : "range";
  if (!one_run) return kind + " of the runs";
  return fmt::format("{} of its {}{}", kind, samples, has_interval ? "' median" : "");
}

std::string spread_names(const std::set<std::string>& kinds) { return join({kinds.begin(), kinds.end()}, " or "); }

std::string test_for(const std::vector<ByBlock>& kinds, const std::string& blocks) {
  const Contrast contrast = chorale::contrast(kinds.at(0), kinds.at(1));
  std::size_t fewest = contrast.blocks;
  for (const ByBlock& kind : kinds) fewest = std::min(fewest, kind.size());
  return contrast.paired ? fmt::format("paired t-test over {} {}", fewest, blocks)
                         : fmt::format("Welch's t-test over {} runs of each", fewest);
}

}  // namespace chorale::report
