// Emulates on the host the part of CUDA that Chorale uses. The threads of a block are fibers of one host thread, and blocks
// run one after another. Streams are in streams.hpp. g++ compiles the device sources with this folder in place of CUDA's
// headers, so the tests need no GPU. The emulation is stricter than a GPU:
//
//   memory   cudaMalloc and dynamic shared memory are filled with NaN, so that reads of unwritten memory are detected. The
//            host cannot access device memory while no kernel runs. cudaFree checks a guard after each block.
//   limits   2^31 − 1 blocks, 1024 threads, whole warps, 227 KiB of shared memory, 4 KiB of arguments. Every access must be
//            aligned to its size. If threads of a block wait in different operations, the program ends.
//   order    The threads of a block run first to last in one block and last to first in the next. The blocks of
//            grids alternate in the same way.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#define __global__
#define __device__
#define __grid_constant__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local  // a host thread runs one block at a time
#define __restrict__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
extern constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;  // constinit: no check at every access

// ── the threads of a block ──
void __syncthreads();
void __syncwarp();

namespace emulation {
// Waits until all lanes of this warp have called exchange(). Returns the contributions of all lanes, most_exchanged bytes
// per lane.
const void* exchange(const void* mine, std::size_t bytes);
inline constexpr std::size_t most_exchanged = 64;
inline unsigned lane() { return threadIdx.x % 32; }
}  // namespace emulation

template <class T>
T __shfl_sync(unsigned, T value, int from) {
  const auto* all = static_cast<const std::byte*>(emulation::exchange(&value, sizeof value));
  return *reinterpret_cast<const T*>(all + emulation::most_exchanged * (static_cast<unsigned>(from) % 32));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return __shfl_sync(mask, value, static_cast<int>(emulation::lane()) ^ bits);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned all = predicate ? 1u << emulation::lane() : 0u;
  for (int bits = 1; bits < 32; bits *= 2) all |= __shfl_xor_sync(mask, all, bits);
  return all;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline long long __float2ll_rn(float value) { return std::llrint(static_cast<double>(value)); }
template <class T>
T atomicAdd(T* place, T value) {  // needs no atomic operation, because only one fiber runs at a time
  return std::exchange(*place, *place + value);
}
template <class T>
T atomicMax(T* place, T value) {
  return std::exchange(*place, value > *place ? value : *place);
}

// ── the runtime ──
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600 };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };
struct EmulatedStream;
using cudaStream_t = EmulatedStream*;
inline const cudaStream_t cudaStreamLegacy = nullptr;
struct EmulatedEvent;
using cudaEvent_t = EmulatedEvent*;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;
struct EmulatedPool;
using cudaMemPool_t = EmulatedPool*;
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major, minor;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** place, std::size_t bytes);
cudaError_t cudaMallocAsync(void** place, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocHost(void** place, std::size_t bytes);
cudaError_t cudaFree(void* place);
cudaError_t cudaFreeAsync(void* place, cudaStream_t stream);
cudaError_t cudaFreeHost(void* place);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* place, int value, std::size_t bytes, cudaStream_t stream);
inline constexpr unsigned cudaHostRegisterPortable = 1;
cudaError_t cudaHostRegister(void* place, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* place);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to);
