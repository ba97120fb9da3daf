// The CUDA plugin: everything that needs the CUDA Toolkit or NCCL is in one shared library beside the program, loaded when
// a device is asked for. So the program itself runs where neither exists. Host code looks up what it needs by name:
//
//   auto* probe = plugin.find<DevicesFunction>("chorale_cuda_devices");
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/handle.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

namespace mpi {
class Runtime;
}

class DevicePlugin {
 public:
  // Looks where CHORALE_CUDA_PLUGIN says; else beside the program and beside libchorale.so, and in lib/chorale where they were installed. When
  // it cannot be loaded, `why_not` says why.
  DevicePlugin();

  bool loaded() const { return bool(library_); }
  const std::string& why_not() const { return why_not_; }

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  template <class Function>
  Function* require(const char* name) const {
    Function* const found = find<Function>(name);
    if (!found) refuse(name);
    return found;
  }

 private:
  struct LibraryTraits {
    using type = void*;
    static type none() { return nullptr; }
    static void close(type) noexcept {}  // stays loaded: CUDA's own threads outlive a dlclose
  };
  void* symbol(const char* name) const;
  [[noreturn]] void refuse(const char* name) const;
  Handle<LibraryTraits> library_;
  std::string why_not_;
};

// The plugin's errors: what, the numbers, the fix. It finds this in the program, since nvcc does not compile what makes our errors.
[[noreturn]] void device_error(const std::string& what, const std::string& numbers, const std::string& fix);

// ── what the plugin offers; plain C linkage, found by name ──

// Of the headers it was compiled with (Makefile). They give the places of virtual functions and of kernels in their table: with others, calls
// would end anywhere, so it is refused.
using PluginMarkFunction = const char*();

struct CudaDevice {
  char name[256];
  int major, minor;  // compute capability
  std::int64_t memory_bytes;
};
// Fills up to `most` devices; returns how many there are, or -1 with a reason of up to 255 letters.
using CudaDevicesFunction = int(CudaDevice* devices, int most, char* reason);
// A new Memory on a device (pinned host memory when index is -1). The caller deletes it.
using CudaMemoryFunction = Memory*(int index);
// 0 when NCCL loads; writes its version, or why it does not work, up to 255 letters.
using NcclProbeFunction = int(char* text);

// Memory on a device, or pinned (index -1); throws when there is no plugin. Whether it lends any is seen when asked.
std::unique_ptr<Memory> cuda_memory(const DevicePlugin& plugin, int index);

// The devices CUDA sees; empty, with the reason, when there are none.
std::vector<CudaDevice> cuda_devices(const DevicePlugin& plugin, std::string* why_none);

// Which of them is this rank's: the ranks of a host take its devices in turn, and where there are too few, several have one.
struct DeviceShare {
  int place, ranks, devices;  // this rank's number on its host, how many they are, and what they share

  int index() const { return place % devices; }
  // Who have this rank's device, itself among them.
  int sharers() const { return (ranks - index() + devices - 1) / devices; }
  bool crowded() const { return ranks > devices; }
};
DeviceShare share_of_devices(const mpi::Runtime& runtime, const std::vector<CudaDevice>& devices);  // collective

}  // namespace chorale
