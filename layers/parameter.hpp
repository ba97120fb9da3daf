// A parameter of the model as one rank holds it: the whole tensor has a global name and shape, the rank a slab of it. Checkpoints,
// optimizers, norms and parallel strategies read only what stands here.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/math/numerics.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {

// Which part of the global tensor is here: rows (dim 0) or columns (dim 1) [first, first + length); all of it when dim is −1.
struct Slab {
  int dim = -1;
  std::int64_t first = 0, length = 0;
};

// Of the ranks that share a layer, the one that builds it: what is cut between them is cut in whole units, as evenly as they go.
struct Share {
  std::int64_t rank = 0, size = 1;

  Slab cut(int dim, std::int64_t length, std::int64_t unit) const {
    if (size == 1) return {};
    const std::int64_t units = (length + unit - 1) / unit;
    const auto start = [&](std::int64_t r) { return std::min(units * r / size * unit, length); };
    return {dim, start(rank), start(rank + 1) - start(rank)};
  }
};

// Of the elements of a slab from `first` on.
Places places_of(const Shape& shape, const Slab& slab, std::int64_t first);

struct Parameter {
  std::string name;  // "block.3.attention.qkv.weight"
  Shape shape;       // global
  Slab slab = {};
  double start = 0, deviation = 0;  // initial values: normal around `start`; all equal when the deviation is 0
  bool decays = true;               // weight decay is for matrices only
  SumOf sum = SumOf::weight_gradients;
  bool of_stream = false;  // its gradient is a sum over the rows of the residual stream, of which a rank may have a part

  Tensor value = {};     // the slab, in the type that is computed with
  Tensor gradient = {};  // Numerics::gradient_type
  Site site = {};

  std::uint32_t random_site() const;  // of random numbers, whatever they are for: its name's

  Shape local_shape() const {
    Shape local = shape;
    if (slab.dim >= 0) local[static_cast<std::size_t>(slab.dim)] = slab.length;
    return local;
  }
};

// Layers share a parameter where they are tied.
using ParameterPointer = std::shared_ptr<Parameter>;

}  // namespace chorale
