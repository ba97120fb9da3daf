// A parameter of the model on one rank: the whole tensor has a global name and shape, and the rank holds a slab of it.
// Checkpoints, optimizers, norms and parallel strategies use only these facts.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/math/numerics.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {

// This rank's part of the global tensor: rows (dim 0) or columns (dim 1) [first, first + length); the whole tensor if dim
// is −1.
struct Slab {
  int dim = -1;
  std::int64_t first = 0, length = 0;
};

// This rank's index among the tensor-parallel ranks. Dimensions are split into whole units, as evenly as possible.
struct Share {
  std::int64_t rank = 0, size = 1;

  Slab cut(int dim, std::int64_t length, std::int64_t unit) const {
    if (size == 1) return {};
    const std::int64_t units = (length + unit - 1) / unit;
    const auto start = [&](std::int64_t r) { return std::min(units * r / size * unit, length); };
    return {dim, start(rank), start(rank + 1) - start(rank)};
  }
};

// The places of a slab's elements from `first` on.
Places places_of(const Shape& shape, const Slab& slab, std::int64_t first);

struct Parameter {
  std::string name;  // "block.3.attention.qkv.weight"
  Shape shape;       // global
  Slab slab = {};
  double start = 0, deviation = 0;  // initial values: normal around `start`; constant if the deviation is 0
  bool decays = true;               // weight decay: matrices only
  SumOf sum = SumOf::weight_gradients;
  bool of_stream = false;  // its gradient sums over rows of the residual stream, which may be split between ranks

  Tensor value = {};     // the slab, in the compute type
  Tensor gradient = {};  // Numerics::gradient_type
  Site site = {};

  std::uint32_t random_site() const;  // a random site derived from the name

  Shape local_shape() const {
    Shape local = shape;
    if (slab.dim >= 0) local[static_cast<std::size_t>(slab.dim)] = slab.length;
    return local;
  }
};

// Tied layers share a parameter.
using ParameterPointer = std::shared_ptr<Parameter>;

}  // namespace chorale
