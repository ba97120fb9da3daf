#include "experiments/common/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/selection.hpp"
#include "experiments/common/shared_files.hpp"
#include "parallel/prediction/system_step.hpp"
#include "src/base/error.hpp"

namespace chorale {

std::string simulated_machine(const std::string& backend) {
  const std::string prefix = "simulated:";
  return backend.starts_with(prefix) ? backend.substr(prefix.size()) : "";
}

std::vector<std::string> with_simulated(std::vector<std::string> names) {
  for (const std::string& machine : shared_names("machines")) names.push_back("simulated:" + machine);
  return names;
}

std::string priced_backend(const Machine& machine, const std::string& name, bool several_hosts) {
  const auto has_prices = [&](const std::string& backend) {
    return std::ranges::any_of(machine.levels, [&](const Level& level) { return level.backend == backend; });
  };
  const std::string backend =
      best_backend(false, [&](const Backend& row) { return has_prices(row.name) && !(several_hosts && row.one_host); });
  if (!has_prices(backend))
    usage_error("the machine file has no prices of calls",
                fmt::format("{} has no [accelerator], and no [[level]] of a backend for these ranks", name),
                "write them: mpirun -np 2 chorale tune all --calibrate, or name a machine of docs/machine_file.md");
  return backend;
}

void refuse_hosts(const std::string& name, const System& system) {
  usage_error("a machine of accelerators has hosts of its own",
              fmt::format("--hosts is given; {} has {} accelerators on a host", name, system.host.accelerators),
              "leave out --hosts, or name a machine without [accelerator]");
}

void send_in_rings(ByAxis& backends, ByAxis& algorithms) {
  for (auto& [axis, backend] : backends)
    if (backend == "auto") backend = backend_of_every_machine();
  for (auto& [axis, algorithm] : algorithms)
    if (algorithm == "auto") algorithm = "ring";
  algorithms.try_emplace("world", "auto");
}

PlanRequest planned_on(const Machine& machine, const std::string& name, const TrainingOptions& options, const Layout& layout,
                       ByAxis algorithms) {
  PlanRequest request{.options = options, .layout = layout, .backends = {{"", "auto"}}, .algorithms = std::move(algorithms)};
  request.selector = std::make_shared<const Selector>(TuningTable{}, machine, machine.signature);
  if (!machine.system) {
    request.backends[""] = priced_backend(machine, name);
    return request;
  }
  send_in_rings(request.backends, request.algorithms);
  if (layout.ranks() > machine.system->host.accelerators) request.hosts = hosts_of(*machine.system, layout.ranks());
  return request;
}

}  // namespace chorale
