// The emulated runtime: one device, whose memory is the heap's, poisoned.
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

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
cudaError_t cudaMalloc(void** place, std::size_t bytes) {
  *place = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*place) return cudaErrorMemoryAllocation;
  std::memset(*place, 0xff, bytes);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** place, std::size_t bytes, cudaStream_t) { return cudaMalloc(place, bytes); }
cudaError_t cudaMallocHost(void** place, std::size_t bytes) { return cudaMalloc(place, bytes); }
cudaError_t cudaFree(void* place) {
  std::free(place);
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
