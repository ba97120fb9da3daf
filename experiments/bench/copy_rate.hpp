// Measures how many bytes per second a rank reads and writes when it copies. Small copies stay in a cache and are faster.
#pragma once
#include <chorale/clock.hpp>

namespace chorale::bench {

// Returns the rate of the fastest of several copies by `threads` threads, which use memcpy or bypass the caches (copy.hpp).
// Half of the `bytes` are read and half are written. `bytes` is raised to 4 KiB and limited to 256 MiB. Takes some
// milliseconds.
double copy_rate(double bytes, int threads, const Clock& clock);

}  // namespace chorale::bench
