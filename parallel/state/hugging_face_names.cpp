// The table of tensor names in the Hugging Face format.
#include <fmt/format.h>

#include "parallel/state/hugging_face.hpp"

namespace chorale {
namespace {

// The indices of `count` groups of `width` columns each. The first group begins at column `first`; the groups begin
// `distance` columns apart.
std::vector<std::int64_t> every(std::int64_t count, std::int64_t width, std::int64_t first, std::int64_t distance) {
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < width; ++j) columns.push_back(first + i * distance + j);
  return columns;
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Renamed> gpt2_names(const ModelShape& s) {
  const std::int64_t h = s.width, f = s.ffn, d = s.head_width();
  std::vector<Renamed> names;
  const auto same = [&](const std::string& theirs, const std::string& ours, Shape shape) {
    names.push_back({theirs, ours, shape, shape});
  };
  std::vector<std::int64_t> qkv;
  for (std::int64_t part = 0; part < 3; ++part) qkv = joined(qkv, every(s.heads, d, part * d, 3 * d));
  same("transformer.wte.weight", "embedding.weight", {s.vocabulary, h});
  same("transformer.wpe.weight", "position.weight", {s.sequence, h});
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string theirs = fmt::format("transformer.h.{}.", layer), ours = fmt::format("block.{}.", layer);
    const auto norm = [&](const char* their_name, const char* our_name) {
      same(theirs + their_name + ".weight", ours + our_name + ".norm.gain", {h});
      same(theirs + their_name + ".bias", ours + our_name + ".norm.shift", {h});
    };
    const auto linear = [&](const char* their_name, const char* our_name, std::int64_t in, std::int64_t out) {
      same(theirs + their_name + ".weight", ours + our_name + ".weight", {in, out});
      same(theirs + their_name + ".bias", ours + our_name + ".bias", {out});
    };
    norm("ln_1", "attention");
    linear("attn.c_attn", "attention.qkv", h, 3 * h);
    names[names.size() - 2].columns = names.back().columns = qkv;
    linear("attn.c_proj", "attention.out", h, h);
    norm("ln_2", "mlp");
    linear("mlp.c_fc", "mlp.up", h, f);
    linear("mlp.c_proj", "mlp.down", f, h);
  }
  same("transformer.ln_f.weight", "norm.gain", {h});
  same("transformer.ln_f.bias", "norm.shift", {h});
  if (!s.tied) same("lm_head.weight", "head.weight", {s.vocabulary, h});
  return names;
}

// The names in a block of Mixtral or Qwen3-MoE. Version 5 of the transformers library can also store `joined`: the matrices
// of all experts in two tensors.
struct ExpertNames {
  const char *router, *experts, *gate, *up, *down;
};
constexpr ExpertNames mixtral{"block_sparse_moe.gate.weight", "block_sparse_moe.experts", "w1", "w3", "w2"};
constexpr ExpertNames qwen{"mlp.gate.weight", "mlp.experts", "gate_proj", "up_proj", "down_proj"};
constexpr const char* joined_router = "mlp.gate.weight";
constexpr const char* joined_up = "mlp.experts.gate_up_proj";  // [E, 2f, h]: per expert, the rows of the gate matrix, then
                                                               // the rows of the up matrix
constexpr const char* joined_down = "mlp.experts.down_proj";   // [E, h, f]

class LlamaNames {
 public:
  explicit LlamaNames(const ModelShape& shape) : s_(shape), h_(shape.width) {
    same("model.embed_tokens.weight", "embedding.weight", {s_.vocabulary, h_});
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      theirs_ = fmt::format("model.layers.{}.", i);
      ours_ = fmt::format("block.{}.", i);
      attention();
      same(theirs_ + "post_attention_layernorm.weight", ours_ + "mlp.norm.gain", {h_});
      if (s_.has_experts(i))
        experts(s_.qk_norm ? qwen : mixtral);
      else
        mlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp", s_.ffn);
    }
    same("model.norm.weight", "norm.gain", {h_});
    if (!s_.tied) same("lm_head.weight", "head.weight", {s_.vocabulary, h_});
  }
  std::vector<Renamed> all;

 private:
  void same(const std::string& theirs, const std::string& ours, Shape shape) { all.push_back({theirs, ours, shape, shape}); }
  // Their tensor is [out, in], and ours is [in, all columns]. Row j of their tensor is column columns[j] of our tensor.
  void linear(const std::string& theirs, const std::string& ours, Shape shape_ours, std::vector<std::int64_t> columns) {
    const std::int64_t out = columns.empty() ? shape_ours[1] : static_cast<std::int64_t>(columns.size());
    all.push_back({theirs_ + theirs + ".weight",
                   ours_ + ours + ".weight",
                   {out, shape_ours[0]},
                   shape_ours,
                   true,
                   std::move(columns)});
  }

  void attention() {
    const std::int64_t d = s_.head_width(), queries = s_.queries(), group = (queries + 2) * d;
    const Shape qkv{h_, s_.qkv_columns()};
    same(theirs_ + "input_layernorm.weight", ours_ + "attention.norm.gain", {h_});
    linear("self_attn.q_proj", "attention.qkv", qkv, every(s_.groups, queries * d, 0, group));
    linear("self_attn.k_proj", "attention.qkv", qkv, every(s_.groups, d, queries * d, group));
    linear("self_attn.v_proj", "attention.qkv", qkv, every(s_.groups, d, (queries + 1) * d, group));
    if (s_.qk_norm) {
      same(theirs_ + "self_attn.q_norm.weight", ours_ + "attention.query_norm.gain", {d});
      same(theirs_ + "self_attn.k_norm.weight", ours_ + "attention.key_norm.gain", {d});
    }
    linear("self_attn.o_proj", "attention.out", {s_.heads * d, h_}, {});
  }

  // Adds an MLP of width `f`. `gate`, `up` and `down` are the names of the MLP's matrices in the files, and `ours` is
  // Chorale's name of the MLP.
  void mlp(const std::string& gate, const std::string& up, const std::string& down, const std::string& ours,
           std::int64_t f) {
    const std::int64_t units = s_.units_of(f), unit = f / units;
    linear(gate, ours + ".up", {h_, 2 * f}, every(units, unit, 0, 2 * unit));
    linear(up, ours + ".up", {h_, 2 * f}, every(units, unit, unit, 2 * unit));
    linear(down, ours + ".down", {f, h_}, {});
  }

  void experts(const ExpertNames& names) {
    const std::int64_t count = s_.experts.count, f = s_.experts.ffn;
    const auto joined = [&](std::size_t back, const char* name, Shape shape, std::int64_t first) {
      all[all.size() - back].joined = {theirs_ + name, std::move(shape), first};
    };
    all.push_back({theirs_ + names.router, ours_ + "mlp.router.weight", {count, h_}, {h_, count}, true});
    joined(1, joined_router, {count, h_}, 0);
    for (std::int64_t e = 0; e < count; ++e) {
      const std::string theirs = fmt::format("{}.{}.", names.experts, e);
      mlp(theirs + names.gate, theirs + names.up, theirs + names.down, fmt::format("mlp.expert.{}", e), f);
      joined(3, joined_up, {count, 2 * f, h_}, 2 * e * f * h_);
      joined(2, joined_up, {count, 2 * f, h_}, (2 * e + 1) * f * h_);
      joined(1, joined_down, {count, h_, f}, e * f * h_);
    }
  }

  const ModelShape& s_;
  std::int64_t h_;
  std::string theirs_, ours_;  // prefixes of the names in this block
};

}  // namespace

std::vector<Renamed> names_of(const ModelShape& shape) {
  return model_type_of(shape) == "gpt2" ? gpt2_names(shape) : LlamaNames(shape).all;
}

}  // namespace chorale
