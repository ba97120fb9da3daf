// The table of Hugging Face's tensor names, and the translation of configurations.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "parallel/state/hugging_face.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

using nlohmann::json;

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

std::vector<Renamed> llama_names(const ModelShape& s) {
  const std::int64_t h = s.width, f = s.ffn, d = s.head_width(), queries = s.queries(), group = (queries + 2) * d,
                     unit = f / s.units();
  std::vector<Renamed> names;
  const auto same = [&](const std::string& theirs, const std::string& ours, Shape shape) {
    names.push_back({theirs, ours, shape, shape});
  };
  same("model.embed_tokens.weight", "embedding.weight", {s.vocabulary, h});
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string theirs = fmt::format("model.layers.{}.", layer), ours = fmt::format("block.{}.", layer);
    const auto linear = [&](const char* their_name, const char* our_name, Shape shape_ours,
                            std::vector<std::int64_t> columns) {
      const std::int64_t out = columns.empty() ? shape_ours[1] : static_cast<std::int64_t>(columns.size());
      names.push_back({theirs + their_name + ".weight",
                       ours + our_name + ".weight",
                       {out, shape_ours[0]},
                       shape_ours,
                       true,
                       std::move(columns)});
    };
    same(theirs + "input_layernorm.weight", ours + "attention.norm.gain", {h});
    linear("self_attn.q_proj", "attention.qkv", {h, s.qkv_columns()}, every(s.groups, queries * d, 0, group));
    linear("self_attn.k_proj", "attention.qkv", {h, s.qkv_columns()}, every(s.groups, d, queries * d, group));
    linear("self_attn.v_proj", "attention.qkv", {h, s.qkv_columns()}, every(s.groups, d, (queries + 1) * d, group));
    linear("self_attn.o_proj", "attention.out", {s.heads * d, h}, {});
    same(theirs + "post_attention_layernorm.weight", ours + "mlp.norm.gain", {h});
    linear("mlp.gate_proj", "mlp.up", {h, 2 * f}, every(s.units(), unit, 0, 2 * unit));
    linear("mlp.up_proj", "mlp.up", {h, 2 * f}, every(s.units(), unit, unit, 2 * unit));
    linear("mlp.down_proj", "mlp.down", {f, h}, {});
  }
  same("model.norm.weight", "norm.gain", {h});
  if (!s.tied) same("lm_head.weight", "head.weight", {s.vocabulary, h});
  return names;
}

// The values of a config.json. Errors name the file and the key.
class Config {
 public:
  Config(const std::string& text, std::string path) : path_(std::move(path)), values_(json::parse(text, nullptr, false)) {
    if (!values_.is_object())
      usage_error("the model's configuration cannot be read", path_ + " is not a JSON object", "fetch the folder again");
  }

  template <class T>
  T get(const char* key, T otherwise) const {
    return has(key) ? at<T>(key) : otherwise;
  }
  std::int64_t size(const char* key) const {
    const auto value = has(key) ? at<std::int64_t>(key) : 0;
    if (value < 1 || value > 1'000'000'000) refuse(key, "it must be a size from 1 to 10⁹");
    return value;
  }
  std::int64_t size(const char* key, std::int64_t otherwise) const { return has(key) ? size(key) : otherwise; }

  // Requires the value `ours`, the only one that is supported. `otherwise` is Hugging Face's default.
  template <class T>
  void only(const char* key, T ours, T otherwise) const {
    if (get<T>(key, otherwise) != ours) refuse(key, fmt::format("only {} is supported", json(ours).dump()));
  }
  // Requires null, or an object whose type is "default". Other types scale the rotary positions, and a model that was
  // trained with scaled positions is useless without the scaling.
  void require_unscaled_positions(const char* key) const {
    if (!has(key)) return;
    const json& rope = value(key);
    const auto is_default = [&](const char* name) {
      return !rope.contains(name) || rope[name].is_null() || rope[name] == "default";
    };
    const bool says_type = rope.is_object() && (rope.contains("rope_type") || rope.contains("type"));
    const bool alone = rope.is_object() && !rope.contains("factor");  // older files have a factor but no type
    if (rope.is_object() && is_default("rope_type") && is_default("type") && (says_type || alone)) return;
    refuse(key,
           "its rotary positions are scaled, and only unscaled ones are supported: take a model without scaling (Llama 2 "
           "and 3, "
           "not 3.1)");
  }
  bool has(const char* key) const { return values_.contains(key) && !values_[key].is_null(); }
  const json& value(const char* key) const { return values_[key]; }

  [[noreturn]] void refuse(const char* key, const std::string& why) const {
    const std::string there =
        values_.contains(key) ? values_[key].dump(-1, ' ', false, json::error_handler_t::replace) : "missing";
    usage_error("this model cannot be imported", fmt::format("\"{}\" is {} in {}", key, there, path_), why);
  }

 private:
  template <class T>
  T at(const char* key) const {
    try {
      return values_[key].get<T>();
    } catch (const json::exception&) {
      refuse(key, "the value has the wrong type");
    }
  }
  std::string path_;
  json values_;
};

ModelShape gpt2_shape(const Config& config) {
  // Both names mean the tanh form of GELU.
  if (config.get<std::string>("activation_function", "gelu_new") != "gelu_pytorch_tanh")
    config.only<std::string>("activation_function", "gelu_new", "gelu_new");
  config.only("scale_attn_weights", true, true);
  config.only("scale_attn_by_inverse_layer_idx", false, false);
  config.only("add_cross_attention", false, false);
  ModelShape shape;
  shape.layers = config.size("n_layer"), shape.heads = shape.groups = config.size("n_head"),
  shape.width = config.size("n_embd");
  shape.ffn = config.size("n_inner", 4 * shape.width), shape.sequence = config.size("n_positions"),
  shape.vocabulary = config.size("vocab_size");
  shape.dropout = config.get("resid_pdrop", 0.1);
  shape.epsilon = config.get("layer_norm_epsilon", 1e-5), shape.tied = config.get("tie_word_embeddings", true);
  if (shape.width % shape.heads != 0) config.refuse("n_head", "it must divide n_embd");
  return shape;
}

ModelShape llama_shape(const Config& config) {
  config.only<std::string>("hidden_act", "silu", "silu");
  for (const char* option : {"attention_bias", "mlp_bias"}) config.only(option, false, false);
  config.only<std::int64_t>("pretraining_tp", 1, 1);
  config.require_unscaled_positions("rope_scaling");
  ModelShape shape{.family = "llama"};
  shape.layers = config.size("num_hidden_layers"), shape.heads = config.size("num_attention_heads"),
  shape.width = config.size("hidden_size");
  shape.groups = config.size("num_key_value_heads", shape.heads), shape.ffn = config.size("intermediate_size");
  shape.sequence = config.size("max_position_embeddings"), shape.vocabulary = config.size("vocab_size");
  shape.epsilon = config.get("rms_norm_eps", 1e-6), shape.rotary_base = config.get("rope_theta", 10000.0);
  shape.dropout = config.get("attention_dropout", 0.0), shape.tied = config.get("tie_word_embeddings", false);
  config.require_unscaled_positions("rope_parameters");
  if (config.has("rope_parameters")) {  // version 5 of the transformers library stores the rotary base here too
    const json theta = config.value("rope_parameters").value("rope_theta", json(shape.rotary_base));
    if (!theta.is_number()) config.refuse("rope_parameters", "its rope_theta must be a number");
    shape.rotary_base = theta;
  }
  if (shape.width % shape.heads != 0) config.refuse("num_attention_heads", "it must divide hidden_size");
  if (shape.heads % shape.groups != 0) config.refuse("num_key_value_heads", "it must divide num_attention_heads");
  if (config.size("head_dim", shape.head_width()) != shape.head_width())
    config.refuse("head_dim", "only hidden_size / num_attention_heads is supported");
  return shape;
}

}  // namespace

std::vector<Renamed> names_of(const ModelShape& shape) {
  if (shape.experts.count > 0)
    usage_error("a model with experts cannot be converted to or from Hugging Face's format",
                fmt::format("num-experts is {}", shape.experts.count), "use chorale's own checkpoints (--load)");
  if (shape.llama()) return llama_names(shape);
  if (shape.groups != shape.heads)
    usage_error(
        "Hugging Face has no such model",
        fmt::format("a GPT-2 has as many key-value heads as heads, but here are {} and {}", shape.groups, shape.heads),
        "only the Llama family can have fewer");
  return gpt2_names(shape);
}

ModelShape shape_of_config(const std::string& config_json, const std::string& path) {
  const Config config(config_json, path);
  const auto family = config.get<std::string>("model_type", "");
  if (family == "gpt2") return gpt2_shape(config);
  if (family == "llama") return llama_shape(config);
  config.refuse("model_type", "only gpt2 and llama are supported");
}

std::string config_of_shape(const ModelShape& s, DType dtype) {
  nlohmann::ordered_json config;
  const char* type = dtype == DType::bf16  ? "bfloat16"
                     : dtype == DType::f16 ? "float16"
                     : dtype == DType::f64 ? "float64"
                                           : "float32";
  if (s.llama())
    config = {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"hidden_act", "silu"},
              {"num_hidden_layers", s.layers},
              {"num_attention_heads", s.heads},
              {"num_key_value_heads", s.groups},
              {"hidden_size", s.width},
              {"intermediate_size", s.ffn},
              {"max_position_embeddings", s.sequence},
              {"vocab_size", s.vocabulary},
              {"rms_norm_eps", s.epsilon},
              {"rope_theta", s.rotary_base},
              {"attention_dropout", s.dropout},
              {"attention_bias", false},
              {"mlp_bias", false}};
  else
    config = {{"architectures", {"GPT2LMHeadModel"}},
              {"model_type", "gpt2"},
              {"activation_function", "gelu_new"},
              {"n_layer", s.layers},
              {"n_head", s.heads},
              {"n_embd", s.width},
              {"n_inner", s.ffn},
              {"n_positions", s.sequence},
              {"vocab_size", s.vocabulary},
              {"layer_norm_epsilon", s.epsilon},
              {"resid_pdrop", s.dropout},
              {"embd_pdrop", s.dropout},
              {"attn_pdrop", s.dropout}};
  config["tie_word_embeddings"] = s.tied;
  config["torch_dtype"] = type;
  for (const char* token : {"bos_token_id", "eos_token_id"})
    config[token] = nullptr;  // the default ids would lie outside a small vocabulary
  return config.dump(2) + "\n";
}

}  // namespace chorale
