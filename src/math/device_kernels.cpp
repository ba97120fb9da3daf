#include "src/math/device_kernels.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace chorale {

const DeviceKernels& cuda_kernels(const DevicePlugin& plugin) {
  return *plugin.require<CudaKernelsFunction>("chorale_cuda_kernels")();
}

std::unique_ptr<Numerics> cuda_numerics(const DevicePlugin& plugin) {
  return std::unique_ptr<Numerics>(plugin.require<CudaNumericsFunction>("chorale_cuda_numerics")());
}

Queue queue_on(const DevicePlugin* device, int threads) {
  return {.threads = threads, .device = device ? &cuda_kernels(*device) : nullptr};
}

std::unique_ptr<Numerics> numerics_on(const DevicePlugin* device, const std::string& name) {
  if (!device) return numerics_named(name);
  if (name != "fast")
    usage_error("exact numerics are computed on the host only", fmt::format("--numerics {} --device cuda", name),
                "use --numerics fast, or --device cpu");
  return cuda_numerics(*device);
}

}  // namespace chorale
