// A query of the emulated NCCL. Given an address, it returns the number of communicators that have registered the memory at
// this address. Given null, it returns the number of all registrations so far.
#pragma once
#include <cstdint>

#include "src/memory/device_plugin.hpp"

namespace chorale::test {

using Registrations = std::int64_t(const void* place);

inline Registrations* registrations() { return DevicePlugin().find<Registrations>("chorale_emulated_registrations"); }

}  // namespace chorale::test
