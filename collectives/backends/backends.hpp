// The table of backends: each way to run our collectives, and whether it works on this machine. `--backend` names a row.
//
// To add a backend, write its file beside this one and its row in backends.cpp. The row holds everything that other code
// asks about a backend by name. If a library is missing from the build, its backend keeps its row: the name stays known, and
// `chorale info` says why it does not work.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/price.hpp"
#include "src/base/mpi.hpp"

namespace chorale {

struct Availability {
  bool works = false;
  std::string detail;  // what was found, or why it does not work
};

struct Backend {
  const char* name;
  const char* about;
  Availability (*probe)();   // examines this machine in milliseconds; null if not built in
  const char* missing = "";  // the fact of the build that explains its absence (src/base/built.hpp)
  std::unique_ptr<Transport> (*open)(const mpi::Runtime&);  // collective; null if not built in
  Price usual;                                              // used until `chorale tune` has measured

  int preference = 0;              // "auto" takes the working row with the highest preference; 0: never
  bool ranks_are_threads = false;  // of one process; has no `open`
  bool one_host = false;           // all ranks must be on one host
  bool maps_memory = false;        // ranks read each other's memory; priced by predict_mapped (analysis/cost.hpp)
  bool devices_only = false;       // its memory is on a device; "auto" takes it for device buffers only
  bool may_be_cuda_aware = false;  // its library may accept device pointers, so CHORALE_CUDA_AWARE may name it
};

const std::vector<Backend>& all_backends();
Availability probe(const Backend& backend);
const Backend& backend_named(const std::string& name);  // usage error with the nearest name if there is none

// The meaning of "auto": the preferred row among those that work.
std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works);
std::string best_backend(const mpi::Runtime& runtime, bool on_device = false);  // works for all these ranks; collective
// The same for groups of these ranks that do not cross hosts.
std::string best_backend_on_a_host(const mpi::Runtime& runtime, bool on_device = false);
bool joins_here(const Backend& backend);  // can join processes, as far as this rank can see

}  // namespace chorale
