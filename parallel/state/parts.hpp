// The state of a training run as it is saved: global tensors, of which a rank holds parts. A part is a slab of the tensor, or a range of the
// slab's elements, which is how ZeRO shards. Parts of two layouts meet by their elements' places in the whole tensor, row by row.
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
  std::int64_t first = 0, count = -1;  // of the slab's elements, row by row; −1: all from `first`

  bool operator==(const Part& other) const;
};

struct StateTensor {
  std::string name;  // "block.0.mlp.up.weight", "moment1/block.0.mlp.up.weight"
  Shape shape;       // global
  Part part;
  Slice data;  // the part's elements
  std::string copy =
      {};  // "dp1.tp1": this rank's place along the axes whose ranks have copies of the part; "" for the owner's, which counts
};

// A part without defaults: `count` is known, and everything lies within the shape. Misuse if it cannot.
Part resolved(const Part& part, const Shape& shape);

// Copies what two parts of one tensor have in common, and returns how many elements that was.
std::int64_t copy_common(const Shape& shape, std::int64_t element_bytes, const Part& from, std::span<const std::byte> source,
                         const Part& to, std::span<std::byte> target);

// "" when the parts are the whole tensor, each element once; else what is wrong. Slabs must be cut along one dim.
std::string flaw_in_cover(const Shape& shape, std::vector<Part> parts);

}  // namespace chorale
