// Measures the copy rate of a rank: the bytes read plus the bytes written, per second. Small copies stay in a cache and are
// faster.
#pragma once
#include <chorale/clock.hpp>

namespace chorale::bench {

// Makes several copies with `threads` threads, with memcpy or with stores that bypass the caches (copy.hpp). Returns the
// rate of the fastest copy. Half of the `bytes` are read and half are written. `bytes` is clamped to the range from 4 KiB to
// 256 MiB. The measurement takes several milliseconds.
double copy_rate(double bytes, int threads, const Clock& clock);

}  // namespace chorale::bench
