// CUDA device memory and pinned host memory. Part of the CUDA plugin (device_plugin.hpp).
#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "src/memory/async_copy.cuh"
#include "src/memory/cuda_memory.cuh"
#include "src/memory/device_plugin.hpp"
#include "src/memory/staging.cuh"

namespace chorale {

extern "C" const DeviceKernels* chorale_cuda_kernels();

namespace {

// Returns the result of a failed allocation. Clears CUDA's last error, because the caller of take() reports the failure and
// no later call should report it again.
void* refused() {
  errno = cudaGetLastError() == cudaErrorMemoryAllocation ? ENOMEM : ENODEV;
  return nullptr;
}

void check(cudaError_t result, const char* call, int device, std::int64_t bytes) {
  if (result == cudaSuccess) return;
  device_error(std::string(call) + ": " + cudaGetErrorString(result),
               std::to_string(bytes) + " bytes, device " + std::to_string(device),
               "the error may come from an earlier kernel: set CUDA_LAUNCH_BLOCKING=1 to find it");
}

// Copies use the default stream, which waits for all work in the device's other blocking streams.
class CudaMemory final : public Memory {
 public:
  // Makes the device current on this thread. Kernels take workspaces from the pool behind cudaMallocAsync. The pool is set
  // to keep its memory; by default it would return the memory to the driver at every synchronization.
  explicit CudaMemory(int index, DeviceLender* lender = nullptr) : index_(index), lender_(lender) {
    cudaSetDevice(index);
    std::uint64_t kept_bytes = UINT64_MAX;
    cudaMemPool_t pool = nullptr;
    if (cudaDeviceGetDefaultMemPool(&pool, index) == cudaSuccess)
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes);
    cudaGetLastError();  // clears the error that a missing device causes; take() reports it
  }
  Device device() const override { return {Device::Kind::cuda, index_}; }
  void* take(std::int64_t bytes) override {
    if (lender_) return lender_->take(bytes);
    void* place = nullptr;
    const bool is_there = cudaSetDevice(index_) == cudaSuccess;  // necessary because any thread can call this function
    if (is_there && cudaMalloc(&place, std::max<std::int64_t>(bytes, 1)) == cudaSuccess) return place;
    return refused();
  }
  void give_back(void* place, std::int64_t bytes) noexcept override {
    if (lender_) return lender_->give_back(place, bytes);
    cudaFree(place);
  }
  std::int64_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<std::int64_t>(free) : -1;
  }

  void copy_in(void* to, const void* from_host, std::int64_t bytes) override {
    if (bytes > Staging::slot_bytes) return cross(to, from_host, bytes);
    check(staging_.send(to, from_host, bytes), "cudaMemcpyAsync", index_, bytes);
  }
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override { cross(to_host, from, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, nullptr), "cudaMemcpyAsync", index_,
          bytes);
  }
  void clear(void* place, std::int64_t bytes) override {
    check(cudaMemsetAsync(place, 0, static_cast<std::size_t>(bytes), nullptr), "cudaMemsetAsync", index_, bytes);
  }
  // If CUDA cannot pin the memory, copies still work but are slower.
  void pin(void* host, std::int64_t bytes) override {
    if (cudaHostRegister(host, static_cast<std::size_t>(bytes), cudaHostRegisterPortable) != cudaSuccess) cudaGetLastError();
  }
  void release(void* host) noexcept override {
    if (cudaHostUnregister(host) != cudaSuccess) cudaGetLastError();
  }
  std::unique_ptr<AsyncCopy> async_copy() override {
    if (!copy_streams_) {
      check(cudaSetDevice(index_), "cudaSetDevice", index_, 0);
      copy_streams_ = std::make_shared<CopyStreams>();
    }
    return std::make_unique<CudaAsyncCopy>(copy_streams_);
  }
  const DeviceKernels* kernels() const override { return chorale_cuda_kernels(); }

 private:
  void cross(void* to, const void* from, std::int64_t bytes) const {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, nullptr), "cudaMemcpyAsync", index_,
          bytes);
    check(cudaStreamSynchronize(nullptr), "cudaMemcpyAsync", index_, bytes);
  }

  int index_;
  DeviceLender* lender_;
  Staging staging_;
  std::shared_ptr<CopyStreams> copy_streams_;  // created on first use
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

std::unique_ptr<Memory> cuda_memory_of(DeviceLender& lender, int index) {
  return std::make_unique<CudaMemory>(index, &lender);
}

extern "C" int chorale_cuda_devices(CudaDevice* devices, int most, char* reason) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    int driver = 0;
    // Without a driver, CUDA's own error message is misleading.
    const bool no_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
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
