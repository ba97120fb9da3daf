#include "src/math/device_kernels.hpp"

namespace chorale {

const DeviceKernels& cuda_kernels(const DevicePlugin& plugin) {
  return *plugin.require<CudaKernelsFunction>("chorale_cuda_kernels")();
}

std::unique_ptr<Numerics> cuda_numerics(const DevicePlugin& plugin) {
  return std::unique_ptr<Numerics>(plugin.require<CudaNumericsFunction>("chorale_cuda_numerics")());
}

}  // namespace chorale
