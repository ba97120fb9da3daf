// The transformer, built from its shape: embedding, blocks of an attention and an MLP branch, a norm, the head.
//
//   ids ─ embedding ─ block.0 ─ … ─ block.L−1 ─ norm ─ head ─ losses
//   block:  x + attention: norm, qkv, core, out      then      x + mlp: norm, up, activation, down
//
// A model is one list of layers, so that a strategy can cut it into stages or units.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/head.hpp"
#include "layers/layer.hpp"
#include "layers/sequence.hpp"
#include "layers/shape.hpp"

namespace chorale {

enum class Remake { none, selective, full };  // what of the activations is computed twice

struct Model {
  ModelShape shape;
  Sequence layers{"model"};
  Head* head = nullptr;  // the last of them

  std::vector<ParameterPointer> parameters() const;
};

Model build_gpt(const ModelShape& shape, Remake remake, const Share& share = {});

// What the sum of a parameter's gradient is to be: `tokens`, of a step's global batch, bounds how many addends it has.
Site site_of(const Parameter& parameter, const ModelShape& shape, std::int64_t tokens);
// Gives every parameter its value and its gradient, each a tensor of its own.
void allocate(Model& model, Allocator& memory, const Numerics& numerics, DType compute, std::int64_t tokens);
// The first values of a parameter, of the elements of its slab from `first` on, as a function of (seed, name, place): the same model on
// every layout, in every floating type.
void initialise(const Parameter& parameter, std::int64_t first, const Slice& values, std::uint64_t seed);

// Activation bytes of a layer with 16-bit elements as published for attention that stores its scores (Korthikanti et al. 2022): s·b·h·(34 +
// 5·a·s/h); ours never stores scores, drops no masks and keeps its own set, which `keeps` counts to the byte.
double published_activation_bytes(const ModelShape& shape, std::int64_t samples);

}  // namespace chorale
