#include "experiments/compare/fill_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/compare/prepared.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan/room.hpp"
#include "src/base/error.hpp"

namespace chorale::compare {
namespace {

Setting chosen(const char* key, std::int64_t value) { return {key, std::to_string(value), "fill-memory"}; }

Layout layout_of(const SuiteRun& run, int ranks) {
  Options options("train");
  train::LayoutFlags flags;
  flags.declare(options);
  for (const Setting& setting : run.settings)
    if (options.find(setting.key)) options.set(setting);
  return flags.layout(ranks);
}

enum class Fit { fits, too_large, illegal };

Fit with_micro_batch(std::int64_t size, SuiteRun run, std::int64_t limit, const std::filesystem::path& parent,
                     const Launch& launch) try {
  const int ranks = run.processes(launch.size);
  run.settings.push_back(chosen("micro-batch-size", size));
  run.settings.push_back(chosen("memory-limit", limit));
  prepare(run, parent, "", {.launcher = "compare", .rank = launch.rank, .size = ranks});
  return Fit::fits;
} catch (const NoRoom&) {
  return Fit::too_large;
} catch (const Error&) {
  return Fit::illegal;
}

// Tries sizes in ascending order, because more sequences need more memory. The first size that is too large ends the search,
// because composing its error message takes long.
std::int64_t largest_micro_batch(const SuiteRun& run, std::int64_t batch, std::int64_t limit,
                                 const std::filesystem::path& parent, const Launch& launch) {
  const Layout layout = layout_of(run, run.processes(launch.size));
  const std::int64_t of_replica = batch / std::max<std::int64_t>(1, layout.replicas());
  const std::int64_t fewest = layout.stages();  // one micro-batch per stage; with fewer, some stages would always be idle
  std::int64_t largest = 1;
  for (std::int64_t size = 1; size * fewest <= of_replica; ++size) {
    if (of_replica % size != 0) continue;
    const Fit fit = with_micro_batch(size, run, limit, parent, launch);
    if (fit == Fit::too_large) break;
    if (fit == Fit::fits) largest = size;
  }
  return largest;
}

}  // namespace

void fill_memory(Suite& suite, const std::filesystem::path& parent, const Launch& launch, std::vector<Mistake>& mistakes) {
  if (suite.fill_memory == 0) return;
  for (SuiteRun& run : suite.runs) {
    if (run.outside || run.command != "train" || run.simulated()) continue;
    bool is_wrong = false;
    for (const char* key : {"micro-batch-size", "memory-limit", "gradient-accumulation-steps"})
      if (find(run.settings, key)) {
        mistakes.push_back({run.line, fmt::format("{} cannot be set, because fill-memory sets it", key)});
        is_wrong = true;
      }
    if (is_wrong) continue;
    try {
      const Prepared plain = prepared_options(run);
      const std::int64_t batch = std::atoll(plain->options.find("global-batch-size")->text.c_str());
      if (batch == 0) {
        mistakes.push_back({run.line, "fill-memory needs a global-batch-size, which micro-batches divide"});
        continue;
      }
      const std::int64_t size = largest_micro_batch(run, batch, suite.fill_memory, parent, launch);
      run.settings.push_back(chosen("micro-batch-size", size));
      run.settings.push_back(chosen("memory-limit", suite.fill_memory));
    } catch (const Error&) {}  // check_runs() reports it
  }
  suite.varied.push_back("micro-batch-size");
}

}  // namespace chorale::compare
