#include "experiments/bench/options.hpp"

#include <algorithm>
#include <filesystem>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/decision.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/simulated.hpp"
#include "src/base/topology.hpp"

namespace chorale::bench {

void Asked::declare(Options& options) {
  std::vector<std::string> choices = backend_names();
  choices.insert(choices.end(), {"auto", "all"});
  const auto with_all = [](std::vector<std::string> names) {
    names.emplace_back("all");
    return names;
  };
  options.add_positional("operations", wanted.ops, "operations: all_reduce, broadcast, …, or all")
      .words("OP…")
      .suggest(with_all({std::begin(collective_names), std::end(collective_names)}));
  Option& backend =
      options.add("backend", backends, "backends that carry the operations; auto: the preferred one that works here");
  if (takes_simulated_)
    backend.suggest(with_simulated(choices)).about += "; simulated:NAME: virtual time on a machine of docs/machine_file.md";
  else
    backend.one_of(choices);
  options.add("algorithm", wanted.algorithms, "algorithms by name, auto, native (the library's own), or all")
      .suggest(with_all(algorithm_names()));
  options.add("dtype", wanted.dtypes, "element types, or all").suggest(with_all(dtype_names()));
  options.add("op", wanted.redops, "operators of collectives that reduce, or all")
      .alias("redop")
      .suggest(with_all({std::begin(redop_names), std::end(redop_names)}));
  options.add("root", wanted.roots, "roots of collectives that have one, or all");
  options.add("chunks", wanted.chunks, "cut schedules into this many chunks");
  options.add("in-place", wanted.in_place, "whether input and output are one buffer").one_of({"both", "yes", "no"});
  options
      .add_bytes("begin", wanted.begin,
                 "smallest size of the whole vector; 0: start with no element, then one element, then multiply")
      .alias("b")
      .range(0, 1e15);
  options.add_bytes("end", wanted.end, "largest size of the whole vector; it is always measured").alias("e").range(0, 1e15);
  options.add("factor", wanted.factor, "factor between sizes; 1: only the smallest").alias("f").range(1, 1e6);
  options.add("repetitions", repetitions_, "timed calls per row; 0: as many as fit into half a second, but 20 to 2000")
      .alias("n")
      .range(0, 1e7);
  options.add("warm-up", warm_up_, "untimed calls before the timed calls").alias("w").range(0, 1e6);
  options.add("order", order_, "seed of the random order in which rows are measured; 0: in the order of the table")
      .range(0, 1e18)
      .changes(Effect::output);
  options.add("cache", cache_, "hot: always the same buffers; cold: buffers that are in no cache").one_of({"hot", "cold"});
  options.add("memory", memory_, "symmetric: memory that peers can map; heap: ordinary memory")
      .one_of({"symmetric", "heap"});
  options
      .add("ranks", threads_,
           takes_simulated_ ? "ranks of the threads backend, or of a simulated machine" : "ranks of the threads backend")
      .range(1, 256);
  hosts_.declare(options, "treat the ranks as if hosts had so many, such as 2,3,1; default: the hosts where they are");
  options.add("tuning", tuning_, "tuning table to use instead of the default one").words("FILE");
  options.add("machine", machine_, "machine file to use instead of the default one").words("FILE");
}

void Asked::check(Writes writes) {
  refuse_unknown(wanted);
  hosts_.resolve(threads_);
  wanted.hosts = hosts_.topology().host_of;
  if (std::erase(backends, "all") > 0)
    for (const std::string& name : backend_names())
      if (!std::count(backends.begin(), backends.end(), name)) backends.push_back(name);
  for (const std::string& name : backends)
    if (is_simulated(name))
      machine_named(simulated_machine(name));
    else if (name != "auto")
      backend_named(name);
  using std::filesystem::exists;
  if (!tuning_.empty() && (writes != Writes::tuning || exists(tuning_))) read_tuning(tuning_);
  if ((!machine_.empty() && writes != Writes::machine) || exists(machine_file())) read_machine(machine_file());
}

Sweep Asked::sweep(const mpi::Runtime& runtime, bool on_device) const {
  std::vector<std::string> names = backends;
  if (std::ranges::count(names, "auto"))
    std::ranges::replace(names, "auto", best_backend(runtime, topology_of(runtime), on_device));
  std::vector<std::string> once;  // "auto" can resolve to a backend that is also named
  for (const std::string& name : names)
    if (!std::ranges::count(once, name)) once.push_back(name);
  return {once,     wanted,    {.repetitions = repetitions_, .warm_up = warm_up_, .cold = cold(), .heap = heap()},
          tuning(), machine(), static_cast<int>(threads_),
          order_};
}

std::string Asked::tuning_file() const { return tuning_.empty() ? default_tuning_file().string() : tuning_; }

TuningTable Asked::tuning() const {
  const std::string file = tuning_file();
  return !file.empty() && std::filesystem::exists(file) ? read_tuning(file) : TuningTable{};
}

std::string Asked::machine_file() const { return machine_.empty() ? default_machine_file().string() : machine_; }

Machine Asked::machine() const { return std::filesystem::exists(machine_file()) ? machine_for(machine_) : Machine{}; }

}  // namespace chorale::bench
