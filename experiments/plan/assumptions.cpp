// Replaces "auto" backends and algorithms in a plan. A run would query its ranks, but a plan has no ranks. The plan
// therefore assumes that all ranks run on machines like this one, or on a named machine. The output states every assumption.

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/selection.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/plan/asked.hpp"
#include "src/base/host.hpp"

namespace chorale::plan {
namespace {

bool leaves_open(const ByAxis& words) {
  return std::ranges::any_of(words, [](const auto& of_axis) { return of_axis.second == "auto"; });
}

// The largest number of ranks that a plan assumes on one host: 64, or the number of this host's cores if it is larger.
std::int64_t most_on_a_host() { return std::max<std::int64_t>(64, std::thread::hardware_concurrency()); }

// Returns the assumption, or "" if every backend was named.
std::string assume_backends(ByAxis& backends, const std::optional<Hosts>& hosts) {
  if (!leaves_open(backends)) return "";
  if (hosts) return hosts->assumed();
  const std::string here = best_backend(false, joins_here);
  for (auto& [axis, backend] : backends)
    if (backend == "auto") backend = here;
  return fmt::format("backend {}, if all ranks are on one host like this one (--backend)", here);
}

}  // namespace

void AskedPlan::assume(PlanRequest& request) {
  const auto on_machine = [&] { return machine.empty() ? machine_for("") : machine_named(machine); };
  if (system) {
    request.selector = std::make_shared<const Selector>(TuningTable{}, on_machine());
    send_in_rings(request.backends, request.algorithms);
    assumed.emplace_back("rings of messages where no --algorithm is given");
    return;
  }
  const TuningTable table_here = tuning_of_this_host();
  request.selector = std::make_shared<const Selector>(table_here, on_machine());
  const std::int64_t needed = std::max(ranks, request.layout.ranks());
  if (!places && needed > most_on_a_host() && leaves_open(request.backends)) {
    send_in_rings(request.backends, request.algorithms);
    assumed.push_back(
        fmt::format("rings of messages, because {} ranks need several hosts (--hosts, --backend, --algorithm)", needed));
    return;
  }
  if (const std::string backend = assume_backends(request.backends, places); !backend.empty()) assumed.push_back(backend);
  if (!leaves_open(request.algorithms)) return;
  const std::string otherwise = request.selector->machine().levels.empty()
                                    ? fmt::format("by the cost model, {}", not_calibrated)
                                    : "by the prices of the machine file";
  assumed.push_back(table_here.machine == machine_signature()
                        ? "auto chooses by what `chorale tune` measured here, otherwise " + otherwise
                        : fmt::format("auto chooses {}, as on a machine without results of `chorale tune`", otherwise));
}

}  // namespace chorale::plan
