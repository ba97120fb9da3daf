// NCCL's host side: asks the plugin, which alone links NCCL.
#include <fmt/format.h>

#include "collectives/backends/backends.hpp"
#include "src/base/built.hpp"
#include "src/memory/device_plugin.hpp"

namespace chorale {

Availability probe_nccl() {
  const DevicePlugin plugin;
  std::string why_none;
  const auto devices = cuda_devices(plugin, &why_none);
  char text[256] = "";
  auto* probe = plugin.find<NcclProbeFunction>("chorale_nccl_probe");
  if (!plugin.loaded()) return {false, why_none};
  if (!probe) return {false, built("without_nccl")};
  if (probe(text) != 0) return {false, text};
  if (devices.empty()) return {false, fmt::format("{} is there, but no device: {}", text, why_none)};
  return {true, fmt::format("{}, {} device{}", text, devices.size(), devices.size() == 1 ? "" : "s")};
}

}  // namespace chorale
