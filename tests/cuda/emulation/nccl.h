// Emulates over MPI the part of NCCL that the backend `nccl` uses, as strictly as NCCL itself. A call stays in progress
// (ncclInProgress) until it has been polled a few times. Until then, further calls are refused. A group of messages
// completes only when each send or receive has been matched, so mismatched groups hang.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

enum ncclResult_t { ncclSuccess, ncclInvalidUsage, ncclInProgress };
enum ncclDataType_t { ncclFloat32, ncclFloat64, ncclFloat16, ncclBfloat16, ncclInt32, ncclInt64, ncclUint8 };
enum ncclRedOp_t { ncclSum, ncclProd, ncclMin, ncclMax };
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking = 1;
};
#define NCCL_CONFIG_INITIALIZER \
  {}

class EmulatedComm;
using ncclComm_t = EmulatedComm*;

ncclResult_t ncclGetVersion(int* version);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclMemAlloc(void** place, std::size_t bytes);
ncclResult_t ncclMemFree(void* place);
ncclResult_t ncclCommRegister(ncclComm_t comm, void* place, std::size_t bytes, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t each, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                               cudaStream_t);
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t each, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t, int root, ncclComm_t, cudaStream_t);
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t, ncclRedOp_t, int root, ncclComm_t,
                        cudaStream_t);
