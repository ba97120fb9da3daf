// The ranks of a run as a mesh: the backends of its axes, and the memory in which peers reach its tensors fastest.
#pragma once
#include <optional>

#include "collectives/backends/backends.hpp"
#include "experiments/command.hpp"
#include "experiments/train/device.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan.hpp"
#include "src/memory/pool.hpp"

namespace chorale::train {

// Replaces auto by the preferred backend that works on every rank; for an axis that stays on hosts, by the preferred one
// there. Collective.
ByAxis resolved(ByAxis backends, bool on_device, const Layout& layout, const mpi::Runtime& runtime);

class Team {
 public:
  Team(const ParallelChoice& choice, ComputeDevice& device, const Session& session);  // collective

  Mesh mesh() const;  // collective: a new mesh with its own groups
  Memory& memory() { return *pool_; }
  const ByAxis& backends() const { return choice_.backends; }        // without auto
  const std::string& about_device() const { return about_device_; }  // "NVIDIA H200; memory registered with NCCL"
  PlanRequest plans(const TrainingOptions& options) const;           // for this team's layout and backends

 private:
  ParallelChoice choice_;
  std::string about_device_;
  HostMemory host_;
  std::optional<Worlds> worlds_;  // none for one rank
  std::unique_ptr<Pool> pool_;
};

}  // namespace chorale::train
