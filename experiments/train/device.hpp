// The device on which a rank computes. With `--device cpu`, ranks compute on CPU cores. With `--device cuda`, each rank uses
// one GPU, in the order of local ranks. If a host has fewer GPUs than ranks, several ranks share a GPU. The results are then
// still correct, but the times mean little. about() then names the number of ranks that share the GPU.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <chorale/training.hpp>
#include "src/base/mpi.hpp"
#include "src/base/options.hpp"
#include "src/memory/device_plugin.hpp"

namespace chorale::train {

class ComputeDevice {
 public:
  void declare(Options& options);
  bool asked() const { return name_ != "cpu"; }
  // Call check() before MPI starts. Throws a usage error if the requested device is missing.
  void check();
  void open(const mpi::Runtime& runtime);           // collective: chooses and opens this rank's GPU
  bool first_of_its_gpu() const { return first_; }  // whether this rank is the first of the ranks that share its GPU
  const std::string& name() const { return gpu_; }  // "NVIDIA H200"; "" on the host
  // The GPU memory that each rank can use: the free bytes of its GPU at open(), divided by the number of ranks that share
  // the GPU. All ranks have the same value: the minimum over the ranks.
  std::int64_t room_bytes() const { return room_bytes_; }

  // If this rank uses a GPU, makes the kernels run there, and sets the size of the workspaces that kernels allocate on the
  // GPU.
  void compute_there(KernelOptions& kernels, NumericsKind numerics) const;

  const DevicePlugin* plugin() const { return memory_ ? &*plugin_ : nullptr; }  // null on the host
  const std::shared_ptr<Memory>& memory() const { return memory_; }             // the GPU's memory; null on the host
  const std::string& about() const { return about_; }                           // "cpu", "NVIDIA H200, shared by 4 ranks"

 private:
  std::string name_ = "cpu", about_ = "cpu", gpu_;
  bool first_ = false;
  std::optional<DevicePlugin> plugin_;
  std::shared_ptr<Memory> memory_;
  std::int64_t room_bytes_ = 0;
};

}  // namespace chorale::train
