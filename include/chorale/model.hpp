// The shape of a model determines the names and sizes of all its parameters. There are two families: GPT-2 (LayerNorm,
// GELU, learned positions, biases) and Llama (RMSNorm, SwiGLU, rotary positions, no biases). V is the vocabulary, s the
// sequence length, h the width, d the width of a head and f the width of the MLP.
//
//   embedding.weight [V,h]   position.weight [s,h]
//   block.0.attention.norm.gain [h]  .norm.shift [h]
//   block.0.attention.qkv.weight [h, groups·(queries+2)·d]  .qkv.bias     columns: [group][queries q | k | v][d]
//   block.0.attention.out.weight [heads·d, h]  .out.bias
//   block.0.attention.query_norm.gain [d]  .key_norm.gain [d]             if queries and keys are normalized
//   block.0.mlp.norm.gain  .norm.shift
//   block.0.mlp.up.weight [h, f]  .up.bias                                Llama: [h, 2f], columns [unit][gate | up][f/units]
//   block.0.mlp.down.weight [f, h]  .down.bias                           …  block.1 …
//   norm.gain  norm.shift   head.weight [V,h] unless tied to the embedding
//
// In a block with experts, the matrices below replace block.0.mlp.up and .down. The matrices below have no biases. There are
// E experts of width f, and a shared expert of width g.
//
//   block.0.mlp.router.weight [h, E]
//   block.0.mlp.expert.0.up.weight [h, f]  .down.weight [f, h]            …  expert.1 …      Llama: up is [h, 2f]
//   block.0.mlp.shared.up.weight [h, g]  .down.weight [g, h]                                 Llama: up is [h, 2g]
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <chorale/math.hpp>
#include <chorale/named.hpp>

namespace chorale {

class Options;

enum class Recompute : std::uint8_t { none, selective, full };  // which activations the backward pass recomputes
constexpr auto names_of(Recompute) { return Names{"kind of recomputation", "none", "selective", "full"}; }

enum class ModelFamily : std::uint8_t { gpt2, llama };
constexpr auto names_of(ModelFamily) { return Names{"model family", "gpt2", "llama"}; }
enum class ScoreFunction : std::uint8_t { softmax, sigmoid };
constexpr auto names_of(ScoreFunction) { return Names{"score function", "softmax", "sigmoid"}; }
// The balance loss depends on the fraction of tokens that are routed to each expert. This fraction is computed over the
// current sequence or over the complete previous step.
enum class BalanceOver : std::uint8_t { sequence, step };
constexpr auto names_of(BalanceOver) { return Names{"kind of balance loss", "seq_aux_loss", "global_aux_loss"}; }

// A mixture of experts (Shazeer et al. 2017): a router sends every token to `chosen` of `count` small MLPs. The definition
// is independent of the layout (docs/architecture/model.md). src/math/routing.hpp documents scores, limits on groups and
// capacity.
struct Experts {
  std::int64_t count = 0;       // E; if it is 0, every MLP is dense, and the other fields are ignored
  std::int64_t chosen = 2;      // k: experts per token
  std::int64_t ffn = 0;         // width of one expert
  std::int64_t shared_ffn = 0;  // width of the shared expert, which processes every token; 0 if there is none
  std::int64_t every = 1;       // block i has experts if (i + 1) % every == 0; all other blocks have a dense MLP
  ScoreFunction score = ScoreFunction::softmax;
  bool before_choice = false;      // softmax over all experts, not renormalized; if false, over the chosen experts
  double scale = 1;                // multiplies the weights of the chosen experts
  std::int64_t groups = 1;         // number of groups of consecutive experts
  std::int64_t chosen_groups = 1;  // a token chooses among the experts of this many highest-scoring groups
  double capacity = 0;             // an expert takes at most ⌈capacity·k·s/E⌉ tokens of a sequence; 0 means no limit
  double balance = 0;              // coefficient of the balance loss
  double z = 0;                    // coefficient of the router's z-loss
  bool bias = false;               // true: experts are chosen by score + bias; every step updates each expert's bias
  double bias_rate = 1e-3;         // amount by which a step changes a bias
  BalanceOver balancing = BalanceOver::sequence;
  std::optional<ForcedRouting> routing = {};  // empty if the router chooses

  bool forced() const { return count > 0 && routing.has_value(); }
  bool operator==(const Experts&) const = default;
  void declare(Options& options);
};

struct ModelShape {
  ModelFamily family = ModelFamily::gpt2;
  std::int64_t layers = 6, heads = 6, groups = 6;  // groups: sets of heads that share one key head and one value head
  std::int64_t width = 384, ffn = 1536, sequence = 256, vocabulary = 4096;
  double dropout = 0, epsilon = 1e-5, rotary_base = 10000;
  bool tied = true;
  Experts experts = {};
  std::int64_t head = 0;  // width of a head; 0 means `width` / `heads`
  bool qk_norm = false;   // an RMSNorm of every query and key head, before the rotation; Llama only
  // True: all parts of the model (pipeline stages, or virtual stages) have the same number of blocks, if possible. If the
  // blocks do not divide evenly, some parts have one block fewer: first the last part, then the first part, then the second
  // to last part, and so on. False: the blocks are distributed so that the parts have about equal work, including the work
  // of the head.
  bool equal_parts = false;

  bool operator==(const ModelShape&) const = default;
  bool llama() const { return family == ModelFamily::llama; }
  std::int64_t queries() const { return heads / groups; }
  std::int64_t head_width() const { return head > 0 ? head : width / heads; }
  std::int64_t qkv_columns() const { return groups * (queries() + 2) * head_width(); }
  // A shard of the MLP consists of complete units. A unit has ffn / units() columns.
  std::int64_t units() const { return units_of(ffn); }
  std::int64_t units_of(std::int64_t width_of_mlp) const { return std::gcd(width_of_mlp, heads); }
  bool has_experts(std::int64_t block) const { return experts.count > 0 && (block + 1) % experts.every == 0; }
  std::int64_t expert_blocks() const { return experts.count > 0 ? layers / experts.every : 0; }
  // The total width of the MLPs that process one token.
  std::int64_t active_ffn(std::int64_t block) const {
    return has_experts(block) ? experts.chosen * experts.ffn + experts.shared_ffn : ffn;
  }
  // Columns of an MLP's first matrix per column of the activation function's output.
  std::int64_t gates() const { return llama() ? 2 : 1; }
  // Shards of the vocabulary consist of complete blocks of this many tokens; the last block may be shorter.
  std::int64_t vocabulary_block() const { return std::clamp<std::int64_t>(vocabulary / 24, 1, 64); }

  std::int64_t parameters() const { return count_parameters(false); }
  // Excludes the experts that a token does not use.
  std::int64_t active_parameters() const { return count_parameters(true); }
  // Flops of the forward and backward pass of one token: 6·(active parameters − parameters of lookup tables) +
  // 6·L·s·heads·d, where L is the number of layers. k of the E experts are active.
  double flops_per_token() const;
  double flops_per_token(std::int64_t block) const;  // flops per token of one block
  void check() const;                                // throws a usage error for an invalid shape
  void declare(Options& options);                    // declares the options of the shape, except presets (shape_options.cpp)
  // Options may leave a width or a number of groups at 0 if the value follows from other sizes. completed() returns a copy
  // with these values filled in.
  ModelShape completed() const;

 private:
  std::int64_t block_parameters(std::int64_t block, bool active) const;
  std::int64_t count_parameters(bool active) const;
};

struct ModelPreset {
  const char* name;
  const char* about;
  ModelShape shape;
  std::int64_t batch;  // default sequences per step
};
const std::vector<ModelPreset>& model_presets();

}  // namespace chorale
