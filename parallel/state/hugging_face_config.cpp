// Translates Hugging Face's config.json to a model's shape, and back.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "parallel/state/hugging_face.hpp"
#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"

namespace chorale {
namespace {

using nlohmann::json;

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

  // Requires the value `ours`, the only supported value. `otherwise` is Hugging Face's default.
  template <class T>
  void only(const char* key, T ours, T otherwise) const {
    if (get<T>(key, otherwise) != ours) refuse(key, fmt::format("only {} is supported", json(ours).dump()));
  }
  // Requires null, or an object whose type is "default". Other types scale the rotary positions, which Chorale does not
  // support. A model that was trained with scaled positions gives wrong results without the scaling.
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
        values_.contains(key) ? shortened(values_[key].dump(-1, ' ', false, json::error_handler_t::replace), 80) : "missing";
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
  // gelu_new and gelu_pytorch_tanh both name the tanh form of GELU.
  if (config.get<std::string>("activation_function", "gelu_new") != "gelu_pytorch_tanh")
    config.only<std::string>("activation_function", "gelu_new", "gelu_new");
  config.only("scale_attn_weights", true, true);
  config.only("scale_attn_by_inverse_layer_idx", false, false);
  config.only("add_cross_attention", false, false);
  ModelShape shape;
  shape.layers = config.size("n_layer");
  shape.heads = shape.groups = config.size("n_head");
  shape.width = config.size("n_embd");
  shape.ffn = config.size("n_inner", 4 * shape.width);
  shape.sequence = config.size("n_positions");
  shape.vocabulary = config.size("vocab_size");
  shape.dropout = config.get("resid_pdrop", 0.1);
  shape.epsilon = config.get("layer_norm_epsilon", 1e-5);
  shape.tied = config.get("tie_word_embeddings", true);
  if (shape.width % shape.heads != 0) config.refuse("n_head", "it must divide n_embd");
  return shape;
}

// Reads the keys that Llama, Qwen3, Mixtral and Qwen3-MoE have in common. `epsilon` and `base` are the model type's
// defaults.
ModelShape llama_shape(const Config& config, double epsilon = 1e-6, double base = 10000) {
  config.only<std::string>("hidden_act", "silu", "silu");
  for (const char* option : {"attention_bias", "mlp_bias"}) config.only(option, false, false);
  config.only<std::int64_t>("pretraining_tp", 1, 1);
  config.require_unscaled_positions("rope_scaling");
  ModelShape shape{.family = ModelFamily::llama};
  shape.layers = config.size("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.width = config.size("hidden_size");
  shape.groups = config.size("num_key_value_heads", shape.heads);
  shape.ffn = config.size("intermediate_size");
  shape.sequence = config.size("max_position_embeddings");
  shape.vocabulary = config.size("vocab_size");
  shape.epsilon = config.get("rms_norm_eps", epsilon);
  shape.rotary_base = config.get("rope_theta", base);
  shape.dropout = config.get("attention_dropout", 0.0);
  shape.tied = config.get("tie_word_embeddings", false);
  config.require_unscaled_positions("rope_parameters");
  if (config.has("rope_parameters")) {  // version 5 of the transformers library also stores the rotary base here
    const json theta = config.value("rope_parameters").value("rope_theta", json(shape.rotary_base));
    if (!theta.is_number()) config.refuse("rope_parameters", "its rope_theta must be a number");
    shape.rotary_base = theta;
  }
  if (shape.heads % shape.groups != 0) config.refuse("num_key_value_heads", "it must divide num_attention_heads");
  if (config.has("head_dim")) {
    const std::int64_t head = config.size("head_dim");
    if (head % 2 != 0) config.refuse("head_dim", "rotary positions need an even width of a head");
    if (head * shape.heads != shape.width) shape.head = head;
  } else if (shape.width % shape.heads != 0) {
    config.refuse("num_attention_heads", "it must divide hidden_size");
  }
  return shape;
}

// Hugging Face computes one balance loss for all expert layers, in which the shares of the experts add up to k. Chorale
// computes a balance loss per layer, in which the shares add up to 1.
double balance_per_theirs(const ModelShape& s) {
  return static_cast<double>(s.experts.chosen) / static_cast<double>(s.expert_blocks());
}

void take_experts(const Config& config, const char* count, std::int64_t ffn, ModelShape& shape) {
  Experts& e = shape.experts;
  e.count = config.size(count);
  e.chosen = config.size("num_experts_per_tok");
  e.ffn = ffn;
  if (e.chosen > e.count) config.refuse("num_experts_per_tok", fmt::format("there are only {} experts", e.count));
}

void take_balance(const Config& config, ModelShape& shape) {
  shape.experts.balance = config.get("router_aux_loss_coef", 0.001) * balance_per_theirs(shape);
}

ModelShape mixtral_shape(const Config& config) {
  ModelShape shape = llama_shape(config, 1e-5, 1e6);
  if (config.has("sliding_window") && config.size("sliding_window") < shape.sequence)
    config.refuse("sliding_window", "only attention to all earlier tokens is supported: it must be null");
  config.only("router_jitter_noise", 0.0, 0.0);
  take_experts(config, "num_local_experts", shape.ffn, shape);
  take_balance(config, shape);
  return shape;
}

ModelShape qwen3_shape(const Config& config) {
  ModelShape shape = llama_shape(config);
  config.only("use_sliding_window", false, false);
  shape.qk_norm = true;
  return shape;
}

// Every decoder_sparse_step-th block has experts, except the blocks in mlp_only_layers. Returns n if every n-th block has
// experts, and 0 if no block has experts.
std::int64_t interval_of_experts(const Config& config, std::int64_t layers) {
  const std::int64_t step = config.size("decoder_sparse_step", 1);
  const auto dense = config.get<std::vector<std::int64_t>>("mlp_only_layers", {});
  std::int64_t interval = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool has = (i + 1) % step == 0 && std::ranges::find(dense, i) == dense.end();
    if (has && interval == 0) interval = i + 1;
    if (has != (interval > 0 && (i + 1) % interval == 0))
      config.refuse("mlp_only_layers", fmt::format("only models with experts in every n-th block are supported: block {} {}",
                                                   i, has ? "has experts" : "has none"));
  }
  return interval;
}

ModelShape qwen3_moe_shape(const Config& config) {
  ModelShape shape = qwen3_shape(config);
  const char* const count = config.has("num_experts") ? "num_experts" : "num_local_experts";  // transformers 5 uses
                                                                                              // num_local_experts
  const std::int64_t interval = config.get<std::int64_t>(count, 1) == 0 ? 0 : interval_of_experts(config, shape.layers);
  if (interval == 0) return shape;
  take_experts(config, count, config.size("moe_intermediate_size"), shape);
  shape.experts.every = interval;
  shape.experts.before_choice = !config.get("norm_topk_prob", false);
  take_balance(config, shape);
  return shape;
}

using json_in_order = nlohmann::ordered_json;

json_in_order gpt2_config(const ModelShape& s) {
  return {{"architectures", {"GPT2LMHeadModel"}},
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
}

json_in_order llama_config(const ModelShape& s, const std::string& type) {
  const char* const architecture = type == "mixtral"     ? "MixtralForCausalLM"
                                   : type == "qwen3_moe" ? "Qwen3MoeForCausalLM"
                                   : type == "qwen3"     ? "Qwen3ForCausalLM"
                                                         : "LlamaForCausalLM";
  json_in_order config = {{"architectures", {architecture}},
                          {"model_type", type},
                          {"hidden_act", "silu"},
                          {"num_hidden_layers", s.layers},
                          {"num_attention_heads", s.heads},
                          {"num_key_value_heads", s.groups},
                          {"head_dim", s.head_width()},
                          {"hidden_size", s.width},
                          {"intermediate_size", type == "mixtral" ? s.experts.ffn : s.ffn},
                          {"max_position_embeddings", s.sequence},
                          {"vocab_size", s.vocabulary},
                          {"rms_norm_eps", s.epsilon},
                          {"rope_theta", s.rotary_base},
                          {"attention_dropout", s.dropout},
                          {"attention_bias", false}};
  if (type == "llama") config["mlp_bias"] = false;
  if (type == "mixtral") {
    config["num_local_experts"] = s.experts.count;
    config["sliding_window"] = nullptr;
  }
  if (type == "qwen3_moe") {
    config["num_experts"] = s.experts.count;
    config["moe_intermediate_size"] = s.experts.ffn;
    config["decoder_sparse_step"] = s.experts.every;
    config["mlp_only_layers"] = json::array();
    config["norm_topk_prob"] = !s.experts.before_choice;
  }
  if (s.experts.count > 0) {
    config["num_experts_per_tok"] = s.experts.chosen;
    config["router_aux_loss_coef"] = s.experts.balance / balance_per_theirs(s);
    config["output_router_logits"] = s.experts.balance > 0;  // without this key, the transformers library trains without the
                                                             // balance loss
  }
  return config;
}

}  // namespace

std::string model_type_of(const ModelShape& s) {
  const auto refuse = [](const std::string& why, const std::string& fix) {
    usage_error("Hugging Face has no such model", why, fix);
  };
  const Experts& e = s.experts;
  if (!s.llama()) {
    if (e.count > 0)
      refuse(fmt::format("a GPT-2 has no experts, but num-experts is {}", e.count), "train with --family llama");
    if (s.groups != s.heads)
      refuse(fmt::format("a GPT-2 has as many key-value heads as heads, but here are {} and {}", s.groups, s.heads),
             "only the Llama family can have fewer");
    if (s.heads * s.head_width() != s.width)
      refuse(fmt::format("the heads of a GPT-2 are together as wide as the model, but {} of width {} are not {}", s.heads,
                         s.head_width(), s.width),
             "only the Llama family can have others");
    return "gpt2";
  }
  if (e.count == 0) return s.qk_norm ? "qwen3" : "llama";
  const char* const stays = "its checkpoints can be loaded with --load";
  if (e.shared_ffn > 0 || e.score != ScoreFunction::softmax || e.scale != 1 || e.groups > 1)
    refuse(fmt::format("Mixtral and Qwen3-MoE have no shared expert, sigmoid scores, scale or groups, but here are "
                       "moe-shared-expert-intermediate-size {}, moe-router-score-function {}, "
                       "moe-router-topk-scaling-factor {} and moe-router-num-groups {}",
                       e.shared_ffn, name_of(e.score), e.scale, e.groups),
           stays);
  if (!s.qk_norm && (e.every > 1 || e.before_choice))
    refuse(fmt::format("Mixtral has experts in every block, with weights from the softmax over the chosen, but here are "
                       "expert-interval {} and moe-router-pre-softmax {}; Qwen3-MoE can have these, with qk-layernorm",
                       e.every, e.before_choice),
           stays);
  return s.qk_norm ? "qwen3_moe" : "mixtral";
}

ModelShape shape_of_config(const std::string& config_json, const std::string& path) {
  const Config config(config_json, path);
  const auto type = config.get<std::string>("model_type", "");
  if (type == "gpt2") return gpt2_shape(config);
  if (type == "llama") return llama_shape(config);
  if (type == "mixtral") return mixtral_shape(config);
  if (type == "qwen3") return qwen3_shape(config);
  if (type == "qwen3_moe") return qwen3_moe_shape(config);
  config.refuse("model_type", "only gpt2, llama, mixtral, qwen3 and qwen3_moe are supported");
}

std::string config_of_shape(const ModelShape& s, DType dtype) {
  const char* const stored = dtype == DType::bf16  ? "bfloat16"
                             : dtype == DType::f16 ? "float16"
                             : dtype == DType::f64 ? "float64"
                                                   : "float32";
  const std::string type = model_type_of(s);
  json_in_order config = type == "gpt2" ? gpt2_config(s) : llama_config(s, type);
  config["tie_word_embeddings"] = s.tied;
  config["torch_dtype"] = stored;
  for (const char* token : {"bos_token_id", "eos_token_id"})
    config[token] = nullptr;  // the default ids would be outside a small vocabulary
  return config.dump(2) + "\n";
}

}  // namespace chorale
