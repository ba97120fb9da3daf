// The emulated runtime: one device, whose memory is the heap's, poisoned.
//
//   [ its length · · · ][ what was lent ][ a guard ]      looked at when it is given back
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr std::size_t guard = 256;      // also what CUDA aligns to
constexpr unsigned char poison = 0xff;  // floats of it are NaN

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
  const std::size_t whole = (guard + bytes + guard + guard - 1) / guard * guard;
  auto* start = static_cast<std::byte*>(std::aligned_alloc(guard, whole));
  if (!start) return cudaErrorMemoryAllocation;
  std::memset(start, poison, whole);
  std::memcpy(start, &bytes, sizeof bytes);
  *place = start + guard;
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** place, std::size_t bytes, cudaStream_t) { return cudaMalloc(place, bytes); }
cudaError_t cudaMallocHost(void** place, std::size_t bytes) { return cudaMalloc(place, bytes); }
cudaError_t cudaFree(void* place) {
  if (!place) return cudaSuccess;
  auto* end = static_cast<std::byte*>(place);
  std::size_t bytes = 0;
  std::memcpy(&bytes, end - guard, sizeof bytes);
  end += bytes;
  if (!std::all_of(end, end + guard, [](std::byte b) { return b == std::byte{poison}; })) {
    std::fprintf(stderr, "emulated kernel: something was written beyond the %zu bytes it was lent\n", bytes);
    std::abort();
  }
  std::free(static_cast<std::byte*>(place) - guard);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* place, cudaStream_t) { return cudaFree(place); }
cudaError_t cudaFreeHost(void* place) { return cudaFree(place); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, std::size_t bytes, cudaStream_t) {
  std::memset(place, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
