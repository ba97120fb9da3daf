// Elementwise reduction of several vectors into one, in the given order: the kernel of every reducing collective.
//
//   out[i] = a[i] ∘ b[i] ∘ c[i] …        16-bit floats are reduced in f32 and rounded once; other types as they are
//
// min and max do not depend on the order: −0 is less than +0, and any NaN gives the quiet NaN (7fc0 0000 in f32). Integer
// sums and products wrap around.
// Memory-bound: reads each source once and writes `out` once. `out` may be one of the sources.
#pragma once
#include <cstdint>
#include <span>

#include <chorale/element.hpp>

namespace chorale {

// avg only sums here; `divide` follows once all contributions are in.
void reduce(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);
// Writes the same result to several vectors. Each of them may be one of the sources.
void reduce(Redop op, DType dtype, std::span<void* const> outs, std::span<const void* const> sources, std::int64_t count);

// out[i] /= by. 16-bit floats divide in f32; integers round toward zero.
void divide(DType dtype, void* out, std::int64_t count, std::int64_t by);

// The plain reference, one element at a time, against which reduce is tested.
void reduce_reference(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);

}  // namespace chorale
