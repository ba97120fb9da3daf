// Where ranks compute: `--device cpu`, or `--device cuda`, one GPU per rank in the order of local ranks. If a host has fewer
// GPUs than ranks, several ranks share one. Then results stay right but times mean little, and the run says so.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "parallel/training.hpp"
#include "src/base/mpi.hpp"
#include "src/base/options.hpp"
#include "src/memory/device_plugin.hpp"

namespace chorale::train {

class ComputeDevice {
 public:
  void declare(Options& options);
  bool asked() const { return name_ != "cpu"; }
  // Before MPI starts: throws a usage error if the requested device is missing.
  void check();
  void open(const mpi::Runtime& runtime);  // collective; this rank's GPU
  bool first_of_its_gpu() const { return first_; }
  const std::string& name() const { return gpu_; }
  // A rank's share of its GPU's free memory when the GPUs were opened; the smallest of all ranks.
  std::int64_t room_bytes() const { return room_bytes_; }

  void complete(TrainingOptions& options) const;  // sets the device, once it is open, and the bytes its workspaces take

  const DevicePlugin* plugin() const { return memory_ ? &*plugin_ : nullptr; }  // null: the host
  const std::shared_ptr<Memory>& memory() const { return memory_; }             // of the GPU; null: the host
  const std::string& about() const { return about_; }                           // "cpu", "NVIDIA H200, shared by 4 ranks"

 private:
  std::string name_ = "cpu", about_ = "cpu", gpu_;
  bool first_ = false;
  std::optional<DevicePlugin> plugin_;
  std::shared_ptr<Memory> memory_;
  std::int64_t room_bytes_ = 0;
};

}  // namespace chorale::train
