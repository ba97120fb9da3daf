// The transformer, built from its shape: embedding, blocks of an attention and an MLP branch, a norm, and the head.
//
//   ids ─ embedding ─ block.0 ─ … ─ block.L−1 ─ norm ─ head ─ losses
//   block:  x + attention: norm, qkv, core, out      then      x + mlp: norm, up, activation, down, or norm, experts
//           In Qwen3, a norm of the heads is added between qkv and core.
//
// A model is a single list of layers, so a strategy can split the list into stages or units.
#pragma once
#include <vector>

#include <chorale/model.hpp>
#include <chorale/named.hpp>
#include "layers/head.hpp"
#include "layers/layer.hpp"
#include "layers/sequence.hpp"

namespace chorale {

struct Model {
  ModelShape shape;
  Sequence layers{"model"};
  Head* head = nullptr;  // the last layer

  std::vector<ParameterPointer> parameters() const { return parameters_of(layers); }
};

// `sharding` is this rank's part of the width of every layer. `experts` is this rank's part of the experts, by default all
// of them.
Model build_gpt(const ModelShape& shape, Recompute recompute, const Sharding& sharding = {}, const Sharding& experts = {});

// The SumSite of a parameter's gradient: its name, kind and number of addends. `tokens` is the number of tokens in the
// global batch of a step. A weight gradient has one addend per leaf (Context::leaves), and any other gradient has one addend
// per token. There are two exceptions: a head norm has one addend per token and head, and a tied table has one additional
// addend per leaf.
SumSite site_of(const Parameter& parameter, const ModelShape& shape, std::int64_t tokens);
// Allocates the value and the gradient of every parameter, each as its own tensor.
void allocate(Model& model, Allocator& memory, const Numerics& numerics, DType compute, std::int64_t tokens);
// Writes the initial values of a parameter's shard (this rank's part), starting at element `first` of the shard. A value
// depends only on the seed, the parameter's name and the element's index in the complete tensor. So the initial model is the
// same on every layout and in every floating-point type.
void initialize(const Parameter& parameter, std::int64_t first, const Slice& values, std::uint64_t seed, int threads);

// The published activation bytes per layer and rank (Korthikanti et al. 2022), for 16-bit elements and attention that stores
// its scores. The formula is s·b·h·(10 + 24/t + 5·a·s/(h·t)) for b samples of s tokens, a heads, width h and t tensor ranks.
// With sequence parallelism, the term 10 is also divided by t. Chorale's layers keep less, because they store neither scores
// nor dropout masks. Layer::keeps returns the exact bytes of a layer.
double published_activation_bytes(const ModelShape& shape, std::int64_t samples, std::int64_t tensor_ranks = 1,
                                  bool sequence_parallel = false);

}  // namespace chorale
