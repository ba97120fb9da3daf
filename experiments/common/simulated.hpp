// With `--backend simulated:NAME`, a command runs in virtual time, on a machine that need not exist. NAME is a machine that
// comes with the program, or a machine file (docs/machine_file.md). One process does the work of all ranks.
//
//   train --backend simulated:selene --layout dp64.tp8.pp16.z1.sp        8192 ranks; a record with the times of a step
//   bench all_reduce --backend simulated:selene --ranks 64               schedules on links, without data
#pragma once
#include <string>
#include <vector>

#include "parallel/plan/plan.hpp"
#include "src/base/machine_file.hpp"

namespace chorale {

// Returns NAME of a backend "simulated:NAME"; "" if the backend is not simulated.
std::string simulated_machine(const std::string& backend);
inline bool is_simulated(const std::string& backend) { return !simulated_machine(backend).empty(); }

// Returns `names`, followed by a name such as "simulated:selene" for each machine that comes with the program.
std::vector<std::string> with_simulated(std::vector<std::string> names);

// Returns the backend whose calls are simulated on a machine without accelerators. It is the preferred backend among the
// backends with prices in the machine file. Throws a usage error if the file has no prices.
std::string priced_backend(const Machine& machine, const std::string& name, bool several_hosts = false);

// Throws the usage error for --hosts on a machine of accelerators, because the machine file defines the hosts.
[[noreturn]] void refuse_hosts(const std::string& name, const System& system);

// Replaces "auto" for a machine of accelerators. Every axis gets ring algorithms, which suit long vectors. The axis "world",
// on which all ranks exchange a few values, keeps "auto", which takes the fastest algorithm.
void send_in_rings(ByAxis& backends, ByAxis& algorithms);

// The request to plan a step on this machine.
PlanRequest planned_on(const Machine& machine, const std::string& name, const TrainingOptions& options, const Layout& layout,
                       ByAxis algorithms);

}  // namespace chorale
