#include "experiments/bench/options.hpp"

#include <algorithm>
#include <filesystem>

#include "collectives/backends/backends.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {
namespace {

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : all_backends()) names.emplace_back(backend.name);
  return names;
}

}  // namespace

void Asked::declare(Options& options) {
  std::vector<std::string> choices = backend_names();
  choices.emplace_back("all");
  options.add_positional("operations", wanted.ops, "operations: all_reduce, broadcast, …, or all")
      .words("OP…")
      .suggest({std::begin(collective_names), std::end(collective_names)});
  options.add("backend", backends, "what carries them; several at once").one_of(choices);
  options.add("algorithm", wanted.algorithms, "names, auto, native (the library's own), or all");
  options.add("dtype", wanted.dtypes, "element types, or all");
  options.add("op", wanted.redops, "operators of those that reduce, or all").alias("redop");
  options.add("root", wanted.roots, "roots of those that have one, or all");
  options.add("chunks", wanted.chunks, "cut schedules into so many chunks");
  options.add("in-place", wanted.in_place, "input and output in one buffer").one_of({"both", "yes", "no"});
  options.add_bytes("begin", wanted.begin, "the smallest size; 0: nothing, then one element, then times the factor")
      .alias("b")
      .range(0, 1e15);
  options.add_bytes("end", wanted.end, "the largest size, of the whole vector").alias("e").range(0, 1e15);
  options.add("factor", wanted.factor, "between sizes; 1: the smallest alone").alias("f").range(1, 1e6);
  options.add("repetitions", repetitions_, "timed calls a row; 0: 2000 small, 200 middle or 20 large ones")
      .alias("n")
      .range(0, 1e7);
  options.add("warm-up", warm_up_, "calls before them").alias("w").range(0, 1e6);
  options.add("order", order_, "the seed of the order in which rows are measured; 0: as they come").range(0, 1e18);
  options.add("cache", cache_, "hot: always the same buffers; cold: more than the last-level cache").one_of({"hot", "cold"});
  options.add("memory", memory_, "symmetric: what peers can map; heap: ordinary").one_of({"symmetric", "heap"});
  options.add("ranks", threads_, "ranks of the threads backend").range(1, 256);
  options.add("ranks-per-node", wanted.ranks_per_node, "that hierarchical algorithms take for a node; 0: all").range(0, 1e6);
  options.add("tuning", tuning_, "the table that `chorale tune` writes, in place of the usual one").words("FILE");
}

void Asked::check() {
  refuse_unknown(wanted);
  if (std::count(backends.begin(), backends.end(), "all")) backends = backend_names();
  if (!tuning_.empty() && std::filesystem::exists(tuning_)) read_tuning(tuning_);
}

Sweep Asked::sweep() const {
  return {backends,
          wanted,
          {.repetitions = repetitions_, .warm_up = warm_up_, .cold = cold(), .heap = heap()},
          tuning(),
          static_cast<int>(threads_),
          order_};
}

std::string Asked::tuning_file() const { return tuning_.empty() ? default_tuning_file().string() : tuning_; }

TuningTable Asked::tuning() const {
  const std::string file = tuning_file();
  return !file.empty() && std::filesystem::exists(file) ? read_tuning(file) : TuningTable{};
}

}  // namespace chorale::bench
