// The transformer, built from its shape: embedding, blocks of an attention and an MLP branch, a norm, and the head.
//
//   ids ─ embedding ─ block.0 ─ … ─ block.L−1 ─ norm ─ head ─ losses
//   block:  x + attention: norm, qkv, core, out      then      x + mlp: norm, up, activation, down, or norm, experts
//           Qwen3 normalizes the heads between qkv and core
//
// A model is one list of layers, so a strategy can split it into stages or units.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <chorale/named.hpp>
#include "layers/head.hpp"
#include "layers/layer.hpp"
#include "layers/sequence.hpp"
#include "layers/shape.hpp"

namespace chorale {

enum class Recompute : std::uint8_t { none, selective, full };  // which activations the backward pass recomputes
constexpr auto names_of(Recompute) { return Names{"kind of recomputation", "none", "selective", "full"}; }

struct Model {
  ModelShape shape;
  Sequence layers{"model"};
  Head* head = nullptr;  // the last layer

  std::vector<ParameterPointer> parameters() const;
};

// sharding: this rank's part of the width of every layer. experts: its part of the experts; by default it has all.
Model build_gpt(const ModelShape& shape, Recompute recompute, const Sharding& sharding = {}, const Sharding& experts = {});

// The site of a parameter's gradient sum (SumSite: its name, kind and number of addends). `tokens`: the tokens of a
// step's global batch; each contributes at most one addend, or one per head to a norm of heads.
SumSite site_of(const Parameter& parameter, const ModelShape& shape, std::int64_t tokens);
// Allocates the value and the gradient of every parameter, each as its own tensor.
void allocate(Model& model, Allocator& memory, const Numerics& numerics, DType compute, std::int64_t tokens);
// Writes initial values for elements of a parameter's shard (this rank's part), from element `first` of the shard on. A
// value depends only on the seed, the parameter's name and the element's index in the whole tensor. So the model starts
// the same on every layout and in every floating type.
void initialize(const Parameter& parameter, std::int64_t first, const Slice& values, std::uint64_t seed, int threads);

// The published activation bytes per layer and rank for 16-bit elements and attention that stores its scores (Korthikanti
// et al. 2022): s·b·h·(10 + 24/t + 5·a·s/(h·t)) for b samples of s tokens, a heads, width h and t tensor ranks. With
// sequence parallelism the tensor ranks also split the term 10. The layers here keep less, because they store neither scores
// nor dropout masks. Layer::keeps gives their exact bytes.
double published_activation_bytes(const ModelShape& shape, std::int64_t samples, std::int64_t tensor_ranks = 1,
                                  bool sequence_parallel = false);

}  // namespace chorale
