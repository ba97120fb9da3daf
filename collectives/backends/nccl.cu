// NCCL on NVIDIA GPUs; part of the plugin.
#include <nccl.h>

#include <cstdio>

#include "src/memory/device_plugin.hpp"

namespace chorale {

extern "C" int chorale_nccl_probe(char* text) {
  int version = 0;
  if (const ncclResult_t result = ncclGetVersion(&version); result != ncclSuccess) {
    std::snprintf(text, 256, "ncclGetVersion: %s", ncclGetErrorString(result));
    return 1;
  }
  std::snprintf(text, 256, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  return 0;
}

}  // namespace chorale
