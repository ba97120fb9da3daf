// The table of backends. A backend is a way to run the collectives. Each row describes one backend and has a function that
// tests whether this backend works on this machine. The option `--backend` selects a row by name.
//
// To add a backend, add its source file to this folder and its row to backends.cpp. The row holds everything that other code
// needs to know about the backend. If the build lacks a backend's library, the row of this backend stays in the table. So
// `--backend` still knows the backend's name, and `chorale info` says why the backend does not work.
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
  std::string detail;  // the detected version or properties, or the reason why the backend does not work
};

struct Backend {
  const char* name;
  const char* about;
  using Probe = Availability();
  using Open = std::unique_ptr<Transport>(const mpi::Runtime&);
  Probe* probe;              // tests the backend on this machine in milliseconds; null if not built
  const char* missing = "";  // key of the reason why the backend is not built (src/base/built.hpp)
  Open* open;                // collective; null if not built
  // Returns the library's name and version; does not start the library.
  std::string (*library)() = nullptr;
  Price usual;  // typical prices, for machine files without prices

  int preference = 0;               // "auto" takes the working backend with the highest value; 0: never
  bool ranks_are_threads = false;   // ranks are threads of one process; `open` is null
  bool one_host = false;            // all ranks must be on one host
  bool maps_memory = false;         // ranks read each other's memory (see predict_mapped)
  bool devices_only = false;        // works only on device memory; "auto" uses it only for device buffers
  bool may_be_cuda_aware = false;   // the library may accept device pointers (CHORALE_CUDA_AWARE)
  bool uses_ucx = false;            // the backend sends messages by UCX
  bool has_native = false;          // the library has collectives of its own on host memory (the algorithm native)
  const char* on_a_host = nullptr;  // the backend whose mapped memory connects ranks of one host; null: this backend does
};

const std::vector<Backend>& all_backends();
Availability probe(const Backend& backend);
const Backend& backend_named(const std::string& name);  // for an unknown name, throws a usage error
inline bool connects_processes(const Backend& backend) { return !backend.ranks_are_threads; }
std::vector<std::string> backend_names(bool (*which)(const Backend&) = nullptr);  // null: of all backends

// Returns the backend that "auto" selects: the working backend with the highest preference.
std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works);
// Returns the backend that "auto" selects for the ranks of `runtime`. The backend must work on all of these ranks and must
// be able to connect the hosts of `topology`. All ranks must call this function.
std::string best_backend(const mpi::Runtime& runtime, const Topology& topology, bool on_device = false);
std::string backend_of_every_machine();   // MPI, because the program runs on it
bool joins_here(const Backend& backend);  // whether the backend can connect processes, as far as this rank knows

}  // namespace chorale
