// Connects the ranks of a run by the chosen backends, and arranges them as a mesh. Tensors are allocated from a pool in the
// memory that peers can access fastest.
#pragma once
#include <optional>

#include "experiments/common/command.hpp"
#include "experiments/train/device.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan/plan.hpp"
#include "src/memory/pool.hpp"

namespace chorale::train {

// Chooses the order of the axes if the layout names none and the ranks are on several hosts. `why` is a line for the user,
// or "".
struct Placed {
  ParallelChoice choice;
  std::string why;
};
Placed placed(ParallelChoice choice, const TrainingOptions& options, const Topology& topology);

class TrainingTeam {
 public:
  TrainingTeam(const ParallelChoice& choice, ComputeDevice& device, const Session& session);  // collective

  Mesh mesh() const;                   // collective: builds a new mesh with new groups
  Memory& memory() { return *pool_; }  // for the tensors of this rank
  // Called before the model exists. With offload, freed blocks are returned to the operating system, and the pool keeps only
  // a few blocks. Returns the resident bytes of the process.
  std::int64_t spare_memory_of(const TrainingOptions& options, int rank);
  const ByAxis& backends() const { return choice_.backends; }        // the backend of each axis; "auto" has been replaced
  const std::string& about_device() const { return about_device_; }  // "NVIDIA H200; memory registered with NCCL"
  PlanRequest plans(const TrainingOptions& options) const;           // a request to plan a run of this layout

 private:
  ParallelChoice choice_;
  std::string about_device_;
  HostMemory host_;
  std::optional<Worlds> worlds_;  // the communicators of the chosen backends; none if the layout has one rank
  std::unique_ptr<Pool> pool_;
};

}  // namespace chorale::train
