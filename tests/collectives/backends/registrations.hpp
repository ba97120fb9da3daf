// A query of the emulated NCCL. Given an address, it returns how many communicators have registered its memory; given null,
// the number of all registrations so far.
#pragma once
#include <cstdint>

#include "src/memory/device_plugin.hpp"

namespace chorale::test {

using Registrations = std::int64_t(const void* place);

inline Registrations* registrations() { return DevicePlugin().find<Registrations>("chorale_emulated_registrations"); }

}  // namespace chorale::test
