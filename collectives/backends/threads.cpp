// Ranks as threads of one process: many ranks without a launcher.
#include <fmt/format.h>

#include <thread>

#include "collectives/backends/backends.hpp"

namespace chorale {

Availability probe_threads() { return {true, fmt::format("{} hardware threads", std::thread::hardware_concurrency())}; }

}  // namespace chorale
