// What only the emulated NCCL tells: how many communicators know the memory at a place; at none, how many registrations there ever were.
#pragma once
#include <cstdint>

#include "src/memory/device_plugin.hpp"

namespace chorale::test {

using Registrations = std::int64_t(const void* place);

inline Registrations* registrations() { return DevicePlugin().find<Registrations>("chorale_emulated_registrations"); }

}  // namespace chorale::test
