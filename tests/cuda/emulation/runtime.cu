// The emulated runtime: one device.
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "refused";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated", std::size_t{1} << 32, 9, 0};
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMalloc(void** place, std::size_t bytes) {
  *place = emulation::take(bytes);
  return *place ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMallocAsync(void** place, std::size_t bytes, cudaStream_t) { return cudaMalloc(place, bytes); }
cudaError_t cudaMallocHost(void** place, std::size_t bytes) {
  *place = std::malloc(bytes);
  return *place ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* place) {
  emulation::give_back(place);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* place, cudaStream_t) { return cudaFree(place); }
cudaError_t cudaFreeHost(void* place) {
  std::free(place);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  emulation::put(stream, [=] {
    const emulation::Open open;
    std::memcpy(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, std::size_t bytes, cudaStream_t stream) {
  emulation::put(stream, [=] {
    const emulation::Open open;
    std::memset(place, value, bytes);
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
