// The shape of a model, which determines the names and sizes of all parameters. Two families: GPT-2 (LayerNorm, GELU,
// learned positions, biases) and Llama (RMSNorm, SwiGLU, rotary positions, no biases). V is the vocabulary, s the
// sequence length, h the width, d the width of a head, f the width of the MLP.
//
//   embedding.weight [V,h]   position.weight [s,h]
//   block.0.attention.norm.gain [h]  .norm.shift [h]
//   block.0.attention.qkv.weight [h, groups·(queries+2)·d]  .qkv.bias     columns: [group][queries q | k | v][d]
//   block.0.attention.out.weight [heads·d, h]  .out.bias
//   block.0.mlp.norm.gain  .norm.shift
//   block.0.mlp.up.weight [h, f]  .up.bias                                Llama: [h, 2f], columns [unit][gate | up][f/units]
//   block.0.mlp.down.weight [f, h]  .down.bias                           …  block.1 …
//   norm.gain  norm.shift   head.weight [V,h] unless tied to the embedding
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace chorale {

struct ModelShape {
  std::string family = "gpt2";                     // or "llama"
  std::int64_t layers = 6, heads = 6, groups = 6;  // groups: sets of heads that share one key and one value
  std::int64_t width = 384, ffn = 1536, sequence = 256, vocabulary = 4096;
  double dropout = 0, epsilon = 1e-5, rotary_base = 10000;
  bool tied = true;

  bool llama() const { return family == "llama"; }
  std::int64_t queries() const { return heads / groups; }
  std::int64_t head_width() const { return width / heads; }
  std::int64_t qkv_columns() const { return groups * (queries() + 2) * head_width(); }
  // Shards of the MLP are whole units of ffn / units columns.
  std::int64_t units() const { return std::gcd(ffn, heads); }
  // Shards of the vocabulary are whole blocks of this many tokens; the last block may be shorter.
  std::int64_t vocabulary_block() const { return std::clamp<std::int64_t>(vocabulary / 24, 1, 64); }

  std::int64_t parameters() const;
  // Flops of the forward and backward pass of one token: 6·(parameters − tables that are only looked up) + 6·L·s·h, where
  // L is the number of layers.
  double flops_per_token() const;
  void check() const;  // throws a usage error for an invalid shape
};

struct ModelPreset {
  const char* name;
  const char* about;
  ModelShape shape;
  std::int64_t batch;  // default sequences per step
};
const std::vector<ModelPreset>& model_presets();

}  // namespace chorale
