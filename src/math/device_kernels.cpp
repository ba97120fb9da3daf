#include "src/math/device_kernels.hpp"

namespace chorale {

const DeviceKernels& cuda_kernels(const DevicePlugin& plugin) {
  return *plugin.require<CudaKernelsFunction>("chorale_cuda_kernels")();
}

Queue queue_on(const DevicePlugin* device, int threads) {
  return {.threads = threads, .device = device ? &cuda_kernels(*device) : nullptr};
}

std::unique_ptr<Numerics> numerics_on(const DevicePlugin* device, NumericsKind kind) {
  if (!device) return numerics_of(kind);
  const char* made_by = kind == NumericsKind::exact ? "chorale_cuda_exact_numerics" : "chorale_cuda_numerics";
  return std::unique_ptr<Numerics>(device->require<CudaNumericsFunction>(made_by)());
}

std::int64_t workspace_bytes_on(const DevicePlugin& device, NumericsKind numerics) {
  return numerics == NumericsKind::exact ? 0 : device.require<CudaWorkspaceFunction>("chorale_cuda_workspace")();
}

}  // namespace chorale
