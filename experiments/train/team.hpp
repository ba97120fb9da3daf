// The ranks of a run as a mesh: which backends carry its axes, and where its tensors lie so that peers reach them fastest.
#pragma once
#include <optional>

#include "collectives/backends/backends.hpp"
#include "experiments/command.hpp"
#include "experiments/train/device.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan.hpp"
#include "src/memory/pool.hpp"

namespace chorale::train {

// In place of auto the first that works on every rank. Collective.
ByAxis resolved(ByAxis backends, bool on_device, const mpi::Runtime& runtime);

class Team {
 public:
  Team(const ParallelChoice& choice, ComputeDevice& device, const Session& session);  // collective

  Mesh mesh() const;  // collective: a new one, of its own groups
  Memory& memory() { return *pool_; }
  const ByAxis& backends() const { return choice_.backends; }        // as resolved
  const std::string& about_device() const { return about_device_; }  // "NVIDIA H200; memory registered with NCCL"
  PlanRequest plans(const TrainingOptions& options) const;           // of this team

 private:
  ParallelChoice choice_;
  std::string about_device_;
  HostMemory host_;
  std::optional<Worlds> worlds_;  // none for one rank
  std::unique_ptr<Pool> pool_;
};

}  // namespace chorale::train
