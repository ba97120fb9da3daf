// A parameter of the model on one rank: the whole tensor has a global name and shape, and the rank holds a slab of it.
// It states which axes cut it, which stages hold it and over which axes its gradient is summed. Buckets, ZeRO, norms,
// checkpoints and plans use only these statements. They never ask for its name.
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

// The places of a slab's elements from `first` on.
Places places_of(const Shape& shape, const Slab& slab, std::int64_t first);

struct Parameter {
  std::string name;  // "block.3.attention.qkv.weight"
  Shape shape;       // global
  Slab slab = {};
  double start = 0, deviation = 0;  // initial values: normal around `start`; constant if the deviation is 0
  bool decays = true;               // weight decay: matrices only
  SumOf sum = SumOf::weight_gradients;
  bool of_stream = false;        // its gradient sums over rows of the residual stream, which may be split between ranks
  bool tied = false;             // the embedding table, which the head reads too
  bool multiplies = true;        // every token is multiplied by it; false for tables whose rows are looked up
  bool after_attention = false;  // it multiplies the output of attention, whose products count with it

  // How ranks hold it. Ranks that differ only in axes that are not in `cut_by` hold copies.
  std::vector<std::string> cut_by = {};       // axes of the mesh along which ranks hold different slabs
  std::vector<std::string> summed_over = {};  // axes over which its gradient is summed
  std::vector<std::int64_t> stages = {0};     // the pipeline stages that hold it

  Tensor value = {};     // the slab, in the compute type
  Tensor gradient = {};  // Numerics::gradient_type
  SumSite site = {};

  std::uint32_t random_site() const;  // a random site derived from the name

  Shape local_shape() const {
    Shape local = shape;
    if (slab.dim >= 0) local[static_cast<std::size_t>(slab.dim)] = slab.length;
    return local;
  }
};

// Tied layers share a parameter.
using ParameterPointer = std::shared_ptr<Parameter>;

// This rank's index among the ranks that share a layer, along some axes. Dimensions are split into whole units, as evenly as
// possible.
struct Share {
  std::int64_t rank = 0, size = 1;
  std::vector<std::string> axes = {"tp"};

  Slab slab(int dim, std::int64_t length, std::int64_t unit) const {
    if (size == 1) return {};
    const std::int64_t units = (length + unit - 1) / unit;
    const auto start = [&](std::int64_t r) { return std::min(units * r / size * unit, length); };
    return {dim, start(rank), start(rank + 1) - start(rank)};
  }
  // Cuts a parameter to this rank's slab.
  void cut(Parameter& parameter, int dim, std::int64_t unit = 1) const {
    parameter.slab = slab(dim, parameter.shape.at(static_cast<std::size_t>(dim)), unit);
    parameter.cut_by = axes;
  }
};

}  // namespace chorale
