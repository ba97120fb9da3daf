// The layers of a model, which gpt.cpp puts together. The file that is named with a layer explains and implements it. A
// layer's `site` identifies its dropout among all dropouts of the model.
#pragma once
#include <optional>

#include <chorale/model.hpp>
#include "layers/norm.hpp"
#include "layers/sequence.hpp"
#include "src/math/attention.hpp"
#include "src/math/embedding.hpp"

namespace chorale {

// embedding.cpp. The first parameter is the token table.
LayerPointer embedding_layer(const ModelShape& shape, std::uint32_t site, const Sharding& sharding);

struct LinearOptions {
  std::int64_t inputs, outputs;
  enum class Cut { columns, rows } cut;
  std::int64_t block;  // rows or columns per block of the split dimension; a block is never divided between ranks
  bool bias = false;
  double deviation = 0.02;
  bool after_attention = false;
  Sharding sharding = {};
};
LayerPointer linear_layer(std::string name, const LinearOptions& options);  // linear.cpp
// Starts y = x·w if each rank holds some blocks of the summed dimension. Computes this rank's partial product and starts the
// sum over ranks. The returned function waits for that sum and returns y.
std::function<Tensor()> start_block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block,
                                            SumSite& site, Context& context);

struct HeadNormOptions {
  std::int64_t groups, all_groups;  // groups of heads on this rank, and on all tensor ranks together
  std::int64_t queries, width;      // query heads of a group; width of a head
  double epsilon;
};
// head_norm.cpp. `attention` is the name of the attention branch, which prefixes the names of the gains.
LayerPointer head_norm_layer(const std::string& attention, const HeadNormOptions& options);

struct AttentionOptions {
  AttentionShape shape;
  std::optional<Rotary> rotary;
  double dropout = 0;
  std::uint32_t site = 0;
  std::size_t cache_slot = 0;  // this layer's index in the key-value cache
  std::int64_t leaves = 1;     // number of leaves per sequence; a leaf is a fixed group of tokens (Context::leaves)
};
LayerPointer attention_layer(std::string name, const AttentionOptions& options);  // attention.cpp

// activation.cpp. columns: number of output columns. block: only for SwiGLU, whose input alternates between `block` gate
// columns and `block` up columns.
enum class ActivationKind { gelu, swiglu };
LayerPointer activation_layer(std::string name, ActivationKind kind, std::int64_t columns, std::int64_t block);

// experts.cpp. `block` is the block's index in the model. `width` is this rank's shard of every expert, and `experts` are
// the experts of this rank. `deviation` is the standard deviation of the initial values of `down`. `shared` is null if there
// is no shared expert.
LayerPointer expert_layer(std::string name, std::int64_t block, const ModelShape& shape, const Sharding& width,
                          const Sharding& experts, double deviation, LayerPointer shared);
struct RoutingRule;
RoutingRule rule_of(const ModelShape& shape);  // the routing rule of a block with experts

struct ResidualOptions {
  std::string bias;  // name of the bias; empty if there is no bias
  std::int64_t width;
  double dropout = 0;
  std::uint32_t site = 0;
};
LayerPointer residual_layer(std::unique_ptr<Norm> norm, LayerPointer body, const ResidualOptions& options);  // residual.cpp

LayerPointer recomputing_layer(LayerPointer inner);  // recompute.cpp

}  // namespace chorale
