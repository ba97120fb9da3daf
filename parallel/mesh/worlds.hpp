// All ranks of a run, connected by one or several backends. The mesh (mesh.hpp) splits the ranks into the groups of a
// layout. Each group uses the backend of its axis.
//
//   --backend ucx,tp=shm      ucx    0 1 2 3     one communicator of all ranks
//                             shm    0 1│2 3     one communicator per host, because shm connects only ranks of one host
#pragma once
#include <map>
#include <memory>
#include <string>

#include "collectives/call/communicator.hpp"
#include "parallel/mesh/placement.hpp"
#include "src/base/topology.hpp"

namespace chorale {

// Collective. Replaces "auto" by the most preferred backend that works on every rank. If each group of an axis lies within
// one host, the axis instead gets the most preferred backend for ranks of one host.
ByAxis resolved(ByAxis backends, bool on_device, const Layout& layout, const mpi::Runtime& runtime);

// All ranks of the run. Several backends connect these ranks at the same time. A backend that connects only ranks of one
// host, such as shm, is opened once per host.
class Worlds {
 public:
  Worlds(const ByAxis& backends, const mpi::Runtime& runtime, Clock& clock, double timeout_seconds = 600);
  explicit Worlds(Communicator world);

  int rank() const { return whole().rank(); }
  int size() const { return whole().size(); }
  const Communicator& for_axis(const std::string& axis) const;
  const ByAxis& backends() const { return backends_; }
  const Topology& topology() const { return topology_; }
  void use_device(const std::shared_ptr<Memory>& device);  // allocates tensors in this memory instead of host memory
  Memory& memory() const;                                  // the memory for tensors; peers can access this memory fastest
  std::string about_memory() const;                        // the description of memory() for the record; may be empty
  std::shared_ptr<const Selector> selector() const;        // chooses algorithms for `auto`; one selector serves all backends
  // Collective. Connects the ranks of equal color by the same backends, in the same order. If `color` is negative, the
  // result is empty.
  Worlds split(int color) const;
  explicit operator bool() const { return bool(worlds_.begin()->second); }

 private:
  Worlds() = default;
  const Communicator& whole() const;    // a communicator that contains all ranks
  const Communicator* nearest() const;  // the communicator whose backend provides memory for tensors; null if no backend
                                        // does
  ByAxis backends_;
  Topology topology_;
  std::map<std::string, Communicator> worlds_;  // the key is the backend
  std::unique_ptr<HostMemory> host_ = std::make_unique<HostMemory>();
  std::shared_ptr<Memory> device_;
};

}  // namespace chorale
