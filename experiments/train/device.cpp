#include "experiments/train/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/advice.hpp"
#include "src/base/error.hpp"

namespace chorale::train {

void ComputeDevice::declare(Options& options) {
  options.add("device", name_, "compute on the cpu, or with cuda on one GPU per rank").one_of({"cpu", "cuda"});
}

void ComputeDevice::check() {
  if (name_ == "cpu") return;
  plugin_.emplace();
  std::string why_none;
  if (cuda_devices(*plugin_, &why_none).empty())
    usage_error("no GPU to compute on", why_none, "use --device cpu; " + program() + " info lists the devices");
}

void ComputeDevice::open(const mpi::Runtime& runtime) {
  if (name_ == "cpu") return;
  std::string why_none;
  const std::vector<CudaDevice> devices = cuda_devices(*plugin_, &why_none);
  const auto without = mpi::ranks_where(runtime.world(), devices.empty());
  if (!without.empty())
    usage_error("no GPU to compute on",
                fmt::format("rank {}: {}", without[0], devices.empty() ? why_none : "no GPU, although other ranks have one"),
                "use --device cpu, or hosts that all have GPUs");
  const DeviceShare share = share_of_devices(runtime, devices);
  memory_ = cuda_memory(*plugin_, share.index());
  about_ = gpu_ = devices[static_cast<std::size_t>(share.index())].name;
  first_ = share.place < share.devices;
  if (share.sharers() > 1) about_ += fmt::format(", shared by {} ranks", share.sharers());
  const auto shares = [&] {
    return mpi::all_gather(runtime.world(), std::max<std::int64_t>(memory_->free_bytes(), 0) / share.sharers());
  };
  shares();  // creates the CUDA context on every rank; the context itself takes device memory
  room_bytes_ = std::ranges::min(shares());
}

void ComputeDevice::compute_there(KernelOptions& kernels, NumericsKind numerics) const {
  kernels.device = plugin();
  if (plugin_) kernels.workspace_bytes = workspace_bytes_on(*plugin_, numerics);
}

}  // namespace chorale::train
