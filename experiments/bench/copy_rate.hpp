// The bytes per second that a rank reads and writes when it copies. Copies of few bytes stay in a cache and are faster.
#pragma once
#include <chorale/clock.hpp>

namespace chorale::bench {

// The fastest of several copies by `threads` threads, with memcpy or past the caches (copy.hpp). A copy touches `bytes`
// bytes, at most 256 MiB, and half of them are reads. Takes some milliseconds.
double copy_rate(double bytes, int threads, const Clock& clock);

}  // namespace chorale::bench
