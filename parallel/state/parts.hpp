// The saved state of a training run consists of tensors, and each rank holds parts of these tensors. Without ZeRO, a part is
// a shard of the full tensor: a range of its rows or columns. Under ZeRO, a part is a range of a shard's elements. In all
// layouts, an element is identified by its row-major index in the full tensor.
//
//   shard: columns 2–3 of [4,6]       . . a b . .        range [2,6) of that shard        . . . . . .
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
  Shard shard = {};
  std::int64_t first = 0, count = -1;  // a row-major range of the shard's elements; if `count` is −1, all elements from
                                       // `first` on

  bool operator==(const Part& other) const = default;
};

struct StateTensor {
  std::string name;  // "block.0.mlp.up.weight", "moment1/block.0.mlp.up.weight"
  Shape shape;       // shape of the full tensor
  Part part;
  Slice data;  // the part's elements
  // "" on the rank that owns the part. On a rank that holds a copy, the rank's coordinates on the axes along which copies
  // exist, such as "dp1.tp1".
  std::string copy = {};
};

// Returns the part with a count of −1 replaced by the number of elements. Throws if the part does not lie within the shape.
Part resolved(const Part& part, const Shape& shape);

// Copies the elements that two parts of a tensor have in common. Returns the number of copied elements.
std::int64_t copy_common(const Shape& shape, std::int64_t element_bytes, const Part& from, std::span<const std::byte> source,
                         const Part& to, std::span<std::byte> target);

bool have_common(const Shape& shape, const Part& a, const Part& b);  // whether an element is in both parts

// Returns "" if the parts cover each element of the tensor exactly once, and all shards are split along the same dim.
// Otherwise describes the flaw.
std::string flaw_in_cover(const Shape& shape, std::vector<Part> parts);

}  // namespace chorale
