// Elementwise reduction of several vectors into one, in the order given: what every collective that sums ends in.
//
//   out[i] = a[i] ∘ b[i] ∘ c[i] …        16-bit floats are widened, reduced in f32, and rounded once; others in their own type
//
// min and max are the same whatever the order: −0 is less than +0, and a NaN anywhere gives the quiet NaN 7fc0 0000. Integers wrap.
// Memory-bound: reads each source once and writes `out` once, which may be one of the sources.
#pragma once
#include <cstdint>
#include <span>

#include "src/memory/dtype.hpp"

namespace chorale {

enum class Redop : std::uint8_t { sum, prod, min, max, avg };
inline constexpr const char* redop_names[] = {"sum", "prod", "min", "max", "avg"};

// avg sums here; `divide` ends it once all contributions are in.
void reduce(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);
// The same into several vectors at once; each may be one of the sources, as a whole.
void reduce(Redop op, DType dtype, std::span<void* const> outs, std::span<const void* const> sources, std::int64_t count);

// out[i] /= by: 16-bit floats in f32, integers towards zero.
void divide(DType dtype, void* out, std::int64_t count, std::int64_t by);

// The same, one element at a time, as plainly as it can be said: what the fast one is held against.
void reduce_reference(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);

}  // namespace chorale
