// A query of the emulated NCCL. For an address: how many communicators have registered its memory. For null: how many
// registrations there have been.
#pragma once
#include <cstdint>

#include "src/memory/device_plugin.hpp"

namespace chorale::test {

using Registrations = std::int64_t(const void* place);

inline Registrations* registrations() { return DevicePlugin().find<Registrations>("chorale_emulated_registrations"); }

}  // namespace chorale::test
