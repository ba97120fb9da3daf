// A parameter of the model on one rank. The name and shape describe the complete tensor. The rank holds a shard: the
// complete tensor, or a range of its rows or columns. The parameter lists the mesh axes that split the tensor, the pipeline
// stages that hold it, and the axes over which its gradient is summed. Buckets, ZeRO, norms, checkpoints and plans use these
// lists and never use parameter names.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/math/numerics.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {

// This rank's part of the complete tensor. If `dim` is 0 or 1, the part is the rows or columns in [`first`, `first` +
// `length`). If `dim` is −1, the part is the complete tensor.
struct Shard {
  int dim = -1;
  std::int64_t first = 0, length = 0;
  bool operator==(const Shard&) const = default;
};

// Maps the elements of a shard, starting at index `first` of the shard, to their indices in the complete tensor. In the
// shard and in the complete tensor, elements are numbered row by row.
Places places_of(const Shape& shape, const Shard& shard, std::int64_t first);

struct Parameter {
  std::string name;  // "block.3.attention.qkv.weight"
  Shape shape;       // shape of the complete tensor
  Shard shard = {};
  double start = 0, deviation = 0;  // initial values: normal around `start`; constant if the deviation is 0
  bool decays = true;               // whether weight decay applies; true only for matrices
  SumOf sum = SumOf::weight_gradients;
  bool of_stream = false;        // true if the parameter is not split and is applied to this rank's rows of the residual
                                 // stream. Examples: norms, residual biases, position table
  bool of_heads = false;         // true if the parameter is not split and is applied to the heads of this rank (norms of
                                 // queries and keys)
  std::int64_t uses = 1;         // number of times that one token uses the parameter; for a norm of heads: the number of
                                 // heads
  bool tied = false;             // true for an embedding table that the head also reads
  bool multiplies = true;        // for counting flops: true for matrices and vectors, false for lookup tables
  double active = 1;             // for counting flops: the fraction of tokens that use the parameter. For an expert, this is
                                 // k/E unless the routing is forced
  bool after_attention = false;  // for counting flops: true for attention's output matrix. The products of attention itself
                                 // are counted with this matrix

  // The ranks of the pipeline stages in `stages` hold the parameter. Among these ranks, ranks with equal coordinates on all
  // axes in `cut_by` hold copies of the same shard. The gradient is summed over the axes in `summed_over`, which never
  // contains the pipeline axis. If two stages hold the parameter (a tied table), its gradient is also summed over these
  // stages.
  std::vector<std::string> cut_by = {};       // axes of the mesh along which ranks hold different shards
  std::vector<std::string> summed_over = {};  // mesh axes over which the gradient is summed
  std::vector<std::int64_t> stages = {0};     // pipeline stages

  Tensor value = {};     // the shard's values, in the compute type
  Tensor gradient = {};  // the shard's gradient, in Numerics::gradient_type
  SumSite site = {};

  std::uint32_t random_site() const;  // a key for random numbers, derived from the name

  Shape local_shape() const {
    Shape local = shape;
    if (shard.dim >= 0) local[static_cast<std::size_t>(shard.dim)] = shard.length;
    return local;
  }
};

// A shared pointer, because tied layers share a parameter.
using ParameterPointer = std::shared_ptr<Parameter>;

// The sharding of a layer holds this rank's index among the ranks that share the layer. These ranks differ in their
// coordinates on the mesh axes `axes`. The ranks split a dimension of a parameter as evenly as possible, but never inside a
// unit (a group of rows or columns).
struct Sharding {
  std::int64_t rank = 0, size = 1;
  std::vector<std::string> axes = {"tp"};

  Shard shard(int dim, std::int64_t length, std::int64_t unit) const {
    if (size == 1) return {};
    const std::int64_t units = (length + unit - 1) / unit;
    const auto start = [&](std::int64_t r) { return std::min(units * r / size * unit, length); };
    return {dim, start(rank), start(rank + 1) - start(rank)};
  }
  // Restricts a parameter to this rank's shard.
  void cut(Parameter& parameter, int dim, std::int64_t unit = 1) const {
    parameter.shard = shard(dim, parameter.shape.at(static_cast<std::size_t>(dim)), unit);
    parameter.cut_by = axes;
  }
};

}  // namespace chorale
