// The table of backends: what can carry our collectives, and whether it can do so here. `--backend` names a row.
//
// To add one: its file beside this one, and its row in backends.cpp. All that the rest of the house asks of a backend by name stands in
// that row. A backend whose library the build did without keeps its row: its name stays known, and `chorale info` says why it is not there.
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
  std::string detail;  // what it found, or, when it does not work, why
};

struct Backend {
  const char* name;
  const char* about;
  Availability (*probe)();   // looks at this machine; takes milliseconds; nullptr when not built in
  const char* missing = "";  // the build's fact that says why (src/base/built.hpp)
  std::unique_ptr<Transport> (*open)(const mpi::Runtime&);  // by all ranks at once; nullptr when not built in
  Price usual;                                              // where `chorale tune` has not measured

  int preference = 0;              // "auto" takes the working row with the highest; 0: never
  bool ranks_are_threads = false;  // of one process: it joins no processes, and has no `open`
  bool one_host = false;           // it joins the ranks of one host only
  bool maps_memory = false;        // ranks read each other's memory: priced by predict_mapped (analysis/cost.hpp)
  bool devices_only = false;       // lends memory of a device; "auto" takes it for buffers on a device only
  bool may_be_cuda_aware = false;  // its library may take pointers to a device's memory: CHORALE_CUDA_AWARE may name it
};

const std::vector<Backend>& all_backends();
Availability probe(const Backend& backend);
const Backend& backend_named(const std::string& name);  // a usage error with the nearest name when there is none

// What "auto" stands for: of the rows that work, the preferred one.
std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works);
std::string best_backend(const mpi::Runtime& runtime, bool on_device = false);  // that joins all these ranks; collective
bool joins_here(const Backend& backend);                                        // processes; as far as this rank can see

}  // namespace chorale
