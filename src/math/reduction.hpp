// Elementwise reduction of several vectors into one, in the given order. The reduction is the kernel of every reducing
// collective.
//
//   out[i] = a[i] ∘ b[i] ∘ c[i] …        16-bit floats are reduced in f32 and rounded once; other types in their own type
//
// The results of min and max do not depend on the order: −0 is less than +0, and any NaN gives the quiet NaN (7fc0 0000 in
// f32). Integer sums and products wrap around. The reduction is memory-bound: it reads each source once and writes `out`
// once. `out` can be one of the sources.
#pragma once
#include <cstdint>
#include <span>

#include <chorale/element.hpp>

namespace chorale {

// For the operator avg, reduce() only sums. The caller must call divide() after all contributions have been added.
void reduce(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);
// Writes the same result to several vectors. Each vector can be one of the sources.
void reduce(Redop op, DType dtype, std::span<void* const> outs, std::span<const void* const> sources, std::int64_t count);

// Divides each of the `count` elements of `out` by `by`. 16-bit floats are divided in f32, and integer quotients are rounded
// toward zero.
void divide(DType dtype, void* out, std::int64_t count, std::int64_t by);

// The plain reference implementation, one element at a time. Tests compare `reduce` with it.
void reduce_reference(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count);

}  // namespace chorale
