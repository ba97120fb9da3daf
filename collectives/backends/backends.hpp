// The table of backends. A backend is a way to run our collectives; its row says whether it works on this machine.
// `--backend` names a row.
//
// To add a backend, write its file beside this one and its row in backends.cpp. The row holds everything that other code
// needs to know about a backend. If a library is missing from the build, its backend keeps its row. So `--backend` still
// knows the name, and `chorale info` says why the backend does not work.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/analysis/price.hpp"
#include "collectives/transport/transport.hpp"
#include "src/base/mpi.hpp"
#include "src/base/topology.hpp"

namespace chorale {

struct Availability {
  bool works = false;
  std::string detail;  // what was found, or why it does not work
};

struct Backend {
  const char* name;
  const char* about;
  Availability (*probe)();   // examines this machine in milliseconds; null if not built in
  const char* missing = "";  // the key of the text that says why it is not built in (src/base/built.hpp)
  std::unique_ptr<Transport> (*open)(const mpi::Runtime&);  // collective; null if not built in
  std::string (*library)() = nullptr;  // name and version of the library; unlike `probe`, does not start the library
  Price usual;                         // typical prices, used until `chorale tune` has measured

  int preference = 0;              // "auto" takes the working backend with the highest preference; 0: never
  bool ranks_are_threads = false;  // ranks are threads of one process, so there is no `open`
  bool one_host = false;           // all ranks must be on one host
  bool maps_memory = false;        // ranks read each other's memory; priced by predict_mapped (analysis/cost.hpp)
  bool devices_only = false;       // works on device memory; "auto" uses it only for device buffers
  bool may_be_cuda_aware = false;  // its library may accept device pointers, so CHORALE_CUDA_AWARE may name this backend
};

const std::vector<Backend>& all_backends();
Availability probe(const Backend& backend);
const Backend& backend_named(const std::string& name);  // if there is none, a usage error that suggests the nearest name

// The backend that "auto" selects: the one with the highest preference among those that work.
std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works);
// The same for the ranks of `runtime`: selects only among backends that work on all of these ranks and can connect the hosts
// of `topology`. Collective.
std::string best_backend(const mpi::Runtime& runtime, const Topology& topology, bool on_device = false);
bool joins_here(const Backend& backend);  // whether it can connect processes, judged from this rank alone

}  // namespace chorale
