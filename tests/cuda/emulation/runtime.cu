// The emulated CUDA runtime, with one device.
#include <cstdlib>
#include <utility>

#include <cuda_runtime.h>

#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace {
cudaError_t last_error = cudaSuccess;
}
cudaError_t emulation::remembered(cudaError_t error) { return last_error = error; }

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "refused";
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated", emulation::total_bytes(), 9, 0};
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
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = emulation::free_bytes();
  *total = emulation::total_bytes();
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** place, std::size_t bytes, cudaStream_t) {
  if (bytes == 0) return cudaErrorInvalidValue;
  emulation::advance();
  *place = emulation::take(bytes);
  if (!*place) emulation::remembered(cudaErrorMemoryAllocation);
  return *place ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMalloc(void** place, std::size_t bytes) {
  emulation::count_wait();
  return cudaMallocAsync(place, bytes, nullptr);
}
cudaError_t cudaMallocHost(void** place, std::size_t bytes) {
  *place = std::malloc(bytes);
  return *place ? cudaHostRegister(*place, bytes, 0) : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeAsync(void* place, cudaStream_t) {
  emulation::advance();
  emulation::give_back(place);
  return cudaSuccess;
}
cudaError_t cudaFree(void* place) {
  emulation::count_wait();
  return cudaFreeAsync(place, nullptr);
}
cudaError_t cudaFreeHost(void* place) {
  cudaHostUnregister(place);
  std::free(place);
  return cudaSuccess;
}
