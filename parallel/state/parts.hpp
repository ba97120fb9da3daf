// The saved state of a training run: global tensors, of which each rank holds parts. A part is a slab of the tensor, or a
// range of the slab's elements, as ZeRO shards it. Elements of two layouts are matched by their index in the whole tensor
// (row-major).
//
//   [4,6], dim 1, columns 2–3        . . a b . .        range [2,6) of that slab        . . . . . .
//                                    . . c d . .                                        . . c d . .
//                                    . . e f . .                                        . . e f . .
//                                    . . g h . .                                        . . . . . .
#pragma once
#include <span>
#include <string>
#include <vector>

#include "layers/parameter.hpp"

namespace chorale {

struct Part {
  Slab slab = {};
  std::int64_t first = 0, count = -1;  // a range of the slab's elements, row-major; −1: all from `first`

  bool operator==(const Part& other) const;
};

struct StateTensor {
  std::string name;  // "block.0.mlp.up.weight", "moment1/block.0.mlp.up.weight"
  Shape shape;       // global
  Part part;
  Slice data;  // the part's elements
  // Marks a copy: "dp1.tp1" is this rank's place along the axes whose ranks hold copies of the part. "" on the owner.
  std::string copy = {};
};

// The part with its `count` filled in, checked to lie within the shape. Throws if it does not.
Part resolved(const Part& part, const Shape& shape);

// Copies the elements that two parts of one tensor have in common. Returns their number.
std::int64_t copy_common(const Shape& shape, std::int64_t element_bytes, const Part& from, std::span<const std::byte> source,
                         const Part& to, std::span<std::byte> target);

// "" if the parts cover each element of the tensor exactly once; else the flaw. All slabs must be cut along the same dim.
std::string flaw_in_cover(const Shape& shape, std::vector<Part> parts);

}  // namespace chorale
