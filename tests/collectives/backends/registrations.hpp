// A function of the emulated NCCL. For an address, this function returns the number of communicators that have registered
// the memory at the address. For null, the function returns the total number of registrations so far.
#pragma once
#include <cstdint>

#include "src/memory/device_plugin.hpp"

namespace chorale::test {

using Registrations = std::int64_t(const void* place);

inline Registrations* registrations() { return DevicePlugin().find<Registrations>("chorale_emulated_registrations"); }

}  // namespace chorale::test
