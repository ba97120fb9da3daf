// The CUDA plugin contains all code that needs the CUDA Toolkit or NCCL. The plugin is a shared library that is loaded when
// a device is requested, so the program itself runs on machines without these libraries. Host code looks up the plugin's
// functions by name:
//
//   auto* probe = plugin.find<CudaDevicesFunction>("chorale_cuda_devices");
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
  // Uses the path in CHORALE_CUDA_PLUGIN if it is set. Otherwise looks in the program's folder, in the folder of
  // libchorale.so, and in lib/chorale of the installation. If loading fails, why_not() returns the reason.
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
    static void close(type) noexcept {}  // the plugin is never unloaded, because CUDA's own threads outlive a dlclose
  };
  void* symbol(const char* name) const;
  [[noreturn]] void refuse(const char* name) const;
  Handle<LibraryTraits> library_;
  std::string why_not_;
};

// Throws an error on behalf of the plugin. The arguments are the description of the failure, the values involved, and the
// suggested fix. The program defines this function, because nvcc cannot compile Chorale's error classes.
[[noreturn]] void device_error(const std::string& what, const std::string& numbers, const std::string& fix);

// ── the plugin's functions: they have C linkage and are found by name ──

// Returns a hash of all headers that the plugin was compiled with (plugin_mark in the Makefile). Headers determine the
// layout of virtual tables and of the kernel table. A plugin that was compiled with different headers is refused, because
// calls would jump to wrong addresses.
using PluginMarkFunction = const char*();

struct CudaDevice {
  char name[256];
  int major, minor;  // compute capability
  std::int64_t memory_bytes;
};
// Fills in up to `most` elements of `devices`. Returns the number of devices. On failure, returns -1 and writes a reason of
// up to 255 characters.
using CudaDevicesFunction = int(CudaDevice* devices, int most, char* reason);
// Returns a new Memory on a device, or pinned host memory if the index is -1. The caller deletes it.
using CudaMemoryFunction = Memory*(int index);
// Returns 0 if NCCL can be loaded. Writes the version of NCCL, or the reason for the failure, in up to 255 characters.
using NcclProbeFunction = int(char* text);

// Returns memory on a device, or pinned host memory if the index is -1. Throws if no plugin is loaded. If the device does
// not work, the first allocation reports the error.
std::unique_ptr<Memory> cuda_memory(const DevicePlugin& plugin, int index);

// Returns the devices that CUDA sees. If there are none, writes the reason to *why_none.
std::vector<CudaDevice> cuda_devices(const DevicePlugin& plugin, std::string* why_none);

// The device that this rank uses. The ranks of a host are assigned to its devices round-robin, so ranks share a device if
// the host has more ranks than devices.
struct DeviceShare {
  int place, ranks, devices;  // this rank's index on its host, the number of ranks on that host, and the number of devices
                              // that they share

  int index() const { return place % devices; }
  // The number of ranks on this rank's device, including itself.
  int sharers() const { return (ranks - index() + devices - 1) / devices; }
  bool crowded() const { return ranks > devices; }
};
DeviceShare share_of_devices(const mpi::Runtime& runtime, const std::vector<CudaDevice>& devices);  // collective

}  // namespace chorale
