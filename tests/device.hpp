// A test case tagged [gpu] first checks whether there is a device: a GPU or the emulated GPU. Without a device, the case is
// counted as skipped, and its name is printed. If CHORALE_CUDA_PLUGIN names a plugin, as under `make test`, the case fails
// instead.
//
//   const DevicePlugin plugin;
//   if (!has_device(plugin)) return;
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/memory/device_plugin.hpp"
#include "tests/catch.hpp"

namespace chorale::test {

void skip_case(const std::string& why);  // this case counts as skipped, unless one of its checks fails

inline bool has_device(const DevicePlugin& plugin) {
  std::string why_none;
  if (!cuda_devices(plugin, &why_none).empty()) return true;
  if (const char* const named = std::getenv("CHORALE_CUDA_PLUGIN"))
    FAIL("CHORALE_CUDA_PLUGIN=" << named << ": " << why_none);
  skip_case(why_none);
  return false;
}

// Whether the device is the emulated device. Only the emulated device can count how often the host waits for the device, or
// hold (block) its default stream.
inline bool has_emulated_device(const DevicePlugin& plugin) {
  if (!has_device(plugin)) return false;
  const bool emulated = plugin.find<std::int64_t()>("chorale_emulated_waits") != nullptr;
  if (!emulated) skip_case("only the emulated device counts waits");
  return emulated;
}

}  // namespace chorale::test
