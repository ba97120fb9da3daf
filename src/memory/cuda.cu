// Memory on CUDA devices, and pinned host memory that they read at full speed. Part of the plugin.
#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "src/memory/device_plugin.hpp"

namespace chorale {
namespace {

// A refusal is no lasting error of CUDA's: the caller names what was wanted.
void* refused() {
  errno = cudaGetLastError() == cudaErrorMemoryAllocation ? ENOMEM : ENODEV;
  return nullptr;
}

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(int index) : index_(index) {}
  Device device() const override { return {Device::Kind::cuda, index_}; }
  void* take(std::int64_t bytes) override {
    void* place = nullptr;
    if (cudaSetDevice(index_) == cudaSuccess && cudaMalloc(&place, std::max<std::int64_t>(bytes, 1)) == cudaSuccess)
      return place;
    return refused();
  }
  void give_back(void* place, std::int64_t) noexcept override { cudaFree(place); }

 private:
  int index_;
};

class PinnedMemory final : public Memory {
 public:
  Device device() const override { return {Device::Kind::pinned, 0}; }
  void* take(std::int64_t bytes) override {
    void* place = nullptr;
    if (cudaMallocHost(&place, std::max<std::int64_t>(bytes, 1)) == cudaSuccess) return place;
    return refused();
  }
  void give_back(void* place, std::int64_t) noexcept override { cudaFreeHost(place); }
};

}  // namespace

extern "C" int chorale_cuda_devices(CudaDevice* devices, int most, char* reason) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    int driver = 0;
    const bool no_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;  // CUDA's own words mislead here
    std::snprintf(reason, 256, "%s", no_driver ? "no NVIDIA driver on this machine" : cudaGetErrorString(error));
    return -1;
  }
  for (int i = 0; i < std::min(count, most); ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) {
      std::snprintf(reason, 256, "device %d: %s", i, cudaGetErrorString(cudaGetLastError()));
      return -1;
    }
    std::memcpy(devices[i].name, properties.name, sizeof devices[i].name);
    devices[i].major = properties.major;
    devices[i].minor = properties.minor;
    devices[i].memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  }
  return count;
}

extern "C" Memory* chorale_cuda_memory(int index) {
  return index < 0 ? static_cast<Memory*>(new PinnedMemory) : new CudaMemory(index);
}

}  // namespace chorale
