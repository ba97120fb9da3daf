// `--backend simulated:NAME`: a command runs in virtual time, on a machine that need not be there. NAME is a machine
// that comes with the program, or a machine file (docs/machines.md). One process does the work of all ranks.
//
//   train --backend simulated:selene --layout dp64.tp8.pp16.z1.sp        8192 ranks; a record with the times of a step
//   bench all_reduce --backend simulated:selene --ranks 64               schedules on links, without data
#pragma once
#include <string>
#include <vector>

#include "parallel/plan/plan.hpp"
#include "src/base/machine_file.hpp"

namespace chorale {

// The NAME in a backend's name; "" if the backend is not simulated.
std::string simulated_machine(const std::string& backend);
inline bool is_simulated(const std::string& backend) { return !simulated_machine(backend).empty(); }

// The names, and those of the machines that come with the program: "simulated:selene".
std::vector<std::string> with_simulated(std::vector<std::string> names);

// The backend whose calls a machine without accelerators simulates: the preferred one of those with prices in its file. A
// usage error if there are none.
std::string priced_backend(const Machine& machine, const std::string& name, bool several_hosts = false);

// The usage error for a user's own hosts on a machine of accelerators.
[[noreturn]] void refuse_hosts(const std::string& name, const System& system);

// Sets what "auto" means on a machine of accelerators: long vectors go around rings; the few numbers that all ranks exchange
// go by the shortest way.
void send_in_rings(ByAxis& backends, ByAxis& algorithms);

// The request to plan a step on this machine.
PlanRequest planned_on(const Machine& machine, const std::string& name, const TrainingOptions& options, const Layout& layout,
                       ByAxis algorithms);

}  // namespace chorale
