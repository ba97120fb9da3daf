#include "experiments/train/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "parallel/state/stored_weights.hpp"
#include "src/base/error.hpp"
#include "src/base/toml.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale::train {

namespace {

// The options that make up a model shape. `text` returns the option's value for a given shape.
struct ShapeOption {
  const char* name;
  std::string (*text)(const ModelShape&);
  bool may_change = false;  // true: a run may resume with another value than the checkpoint's
};

// A field of the experts as text; empty for a dense model, to which these options do not apply.
template <class Field>
std::string of_experts(const ModelShape& s, Field Experts::*field) {
  return s.experts.count > 0 ? fmt::format("{}", s.experts.*field) : "";
}

const std::string dropless = "dropless";

const ShapeOption shape_options[] = {
    {"family", [](const ModelShape& s) { return s.family; }},
    {"num-layers", [](const ModelShape& s) { return std::to_string(s.layers); }},
    {"num-attention-heads", [](const ModelShape& s) { return std::to_string(s.heads); }},
    {"num-query-groups", [](const ModelShape& s) { return std::to_string(s.groups); }},
    {"hidden-size", [](const ModelShape& s) { return std::to_string(s.width); }},
    {"ffn-hidden-size", [](const ModelShape& s) { return std::to_string(s.ffn); }},
    {"seq-length", [](const ModelShape& s) { return std::to_string(s.sequence); }},
    {"vocab-size", [](const ModelShape& s) { return std::to_string(s.vocabulary); }},
    {"norm-epsilon", [](const ModelShape& s) { return fmt::format("{}", s.epsilon); }},
    {"rotary-base", [](const ModelShape& s) { return s.llama() ? fmt::format("{}", s.rotary_base) : ""; }},
    {"untie-embeddings", [](const ModelShape& s) { return std::string(s.tied ? "false" : "true"); }},
    {"kv-channels", [](const ModelShape& s) { return std::to_string(s.head); }},
    {"qk-layernorm", [](const ModelShape& s) { return s.llama() ? fmt::format("{}", s.qk_norm) : ""; }},
    {"num-experts", [](const ModelShape& s) { return std::to_string(s.experts.count); }},
    {"moe-router-topk", [](const ModelShape& s) { return of_experts(s, &Experts::chosen); }},
    {"moe-ffn-hidden-size", [](const ModelShape& s) { return of_experts(s, &Experts::ffn); }},
    {"moe-shared-expert-intermediate-size", [](const ModelShape& s) { return of_experts(s, &Experts::shared_ffn); }},
    {"expert-interval", [](const ModelShape& s) { return of_experts(s, &Experts::every); }},
    {"moe-router-score-function", [](const ModelShape& s) { return of_experts(s, &Experts::score); }},
    {"moe-router-pre-softmax", [](const ModelShape& s) { return of_experts(s, &Experts::before_choice); }},
    {"moe-router-topk-scaling-factor", [](const ModelShape& s) { return of_experts(s, &Experts::scale); }},
    {"moe-router-num-groups", [](const ModelShape& s) { return of_experts(s, &Experts::groups); }},
    {"moe-router-group-topk", [](const ModelShape& s) { return of_experts(s, &Experts::chosen_groups); }},
    {"moe-expert-capacity-factor",
     [](const ModelShape& s) { return s.experts.capacity > 0 ? of_experts(s, &Experts::capacity) : dropless; }},
    {"moe-aux-loss-coeff", [](const ModelShape& s) { return of_experts(s, &Experts::balance); }, true},
    {"moe-z-loss-coeff", [](const ModelShape& s) { return of_experts(s, &Experts::z); }, true},
    {"moe-router-enable-expert-bias", [](const ModelShape& s) { return of_experts(s, &Experts::bias); }},
    {"moe-router-bias-update-rate",
     [](const ModelShape& s) { return s.experts.bias ? of_experts(s, &Experts::bias_rate) : ""; }, true},
    {"moe-router-load-balancing-type", [](const ModelShape& s) { return of_experts(s, &Experts::balancing); }, true},
    {"routing", [](const ModelShape& s) { return of_experts(s, &Experts::routing); }, true}};

std::vector<Setting> settings_of(const ModelShape& shape, const std::string& origin) {
  std::vector<Setting> settings;
  for (const ShapeOption& option : shape_options)
    if (const std::string text = option.text(shape); !text.empty()) settings.push_back({option.name, text, origin});
  return settings;
}

// The global batch size in a run's options, or 0 if it followed from other options.
std::int64_t batch_in(const std::string& toml_of_run) try {
  return toml::parse(toml_of_run)["global-batch-size"].value_or(std::int64_t{0});
} catch (const toml::parse_error&) {  // the options of another version
  return 0;
}

}  // namespace

// A preset sets an option to 0 if its value is the derived one (as many groups as heads, an MLP four times as wide as the
// model). The value is then derived again when a user overrides the number of heads or the width.
std::vector<Preset> presets() {
  std::vector<Preset> all;
  for (const ModelPreset& preset : model_presets()) {
    const ModelShape& s = preset.shape;
    Preset& made = all.emplace_back(Preset{preset.name, preset.about, {}});
    for (const Setting& setting : settings_of(s, "")) {
      const bool follows = (setting.key == "num-query-groups" && s.groups == s.heads) ||
                           (setting.key == "ffn-hidden-size" && s.ffn == 4 * s.width) ||
                           (setting.key == "moe-ffn-hidden-size" && s.experts.ffn == s.ffn);
      made.values.emplace_back(setting.key, follows ? "0" : setting.text);
    }
    made.values.emplace_back("global-batch-size", std::to_string(preset.batch));
  }
  return all;
}

// Dropout and batch are not in `shape_options`, because presets do not set the one, and the other is not of the model.
Foreign read_checkpoint_shape(const std::filesystem::path& path) {
  const std::optional<Metadata> metadata = metadata_of_checkpoint(path);
  if (!metadata) return {};
  const std::string origin = "model " + path.string();
  std::vector<Setting> settings = settings_of(metadata->model, origin);
  settings.push_back({"dropout", fmt::format("{}", metadata->model.dropout), origin});
  if (const std::int64_t batch = batch_in(metadata->config); batch > 0)
    settings.push_back({"global-batch-size", std::to_string(batch), origin});
  return {settings, {}};
}

Foreign read_hugging_face_shape(const std::filesystem::path& folder) {
  return {settings_of(shape_of_folder(folder), "model " + folder.string()), {}};
}

std::string words_for_active(const ModelShape& shape) {
  if (shape.experts.count == 0) return "";
  return fmt::format(", {:.2f} of them active", static_cast<double>(shape.active_parameters()) / 1e6);
}

void Flags::declare(Options& o) {
  options_ = &o;
  o.section("model");
  o.add("preset", "a predefined model, such as nano; other options override its values").words("NAME");
  o.add("family", shape_.family, "gpt2 (LayerNorm, GELU, learned positions) or llama (RMSNorm, SwiGLU, rotary)")
      .one_of({"gpt2", "llama"});
  o.add("num-layers", shape_.layers, "transformer blocks").range(1, 1e4);
  o.add("hidden-size", shape_.width, "width of the residual stream").range(1, 1e6);
  o.add("ffn-hidden-size", ffn_, "width of the MLP; 0: four times hidden-size").range(0, 1e7);
  o.add("num-attention-heads", shape_.heads, "attention heads").range(1, 1e5);
  o.add("num-query-groups", groups_, "key and value heads (GQA); 0: one per attention head").range(0, 1e5);
  o.add("seq-length", shape_.sequence, "tokens per sequence").range(1, 1e7);
  o.add("vocab-size", shape_.vocabulary, "tokens in the vocabulary").range(1, 1e8);
  o.add("rotary-base", shape_.rotary_base, "base of rotary positions").range(1, 1e9).only_with("family", {"llama"});
  o.add("kv-channels", shape_.head, "width of a head; 0: hidden-size / num-attention-heads").range(0, 1e5);
  o.add("qk-layernorm", shape_.qk_norm, "an RMSNorm of every query and key head, before the rotation, as in Qwen3")
      .only_with("family", {"llama"});
  o.add("norm-epsilon", shape_.epsilon, "added to the variance before a norm takes its root").range(1e-12, 1);
  o.add("dropout", shape_.dropout, "probability of dropping an activation or attention weight").range(0, 0.999);
  o.add("untie-embeddings", untied_, "the output head gets its own table, not the embedding's");
  declare_experts(o);
  o.section("numbers and memory");
  o.add("dtype", dtype_, "type of parameters and activations in matrix products").one_of({"f32", "bf16", "f16", "f64"});
  o.add("numerics", numerics_, "fast, or exact: the same bits on every layout").one_of({"fast", "exact"});
  o.add("recompute", recompute_, "activations to recompute in the backward pass instead of keeping them")
      .one_of({"none", "selective", "full"});
  o.section("batches and steps");
  o.add("global-batch-size", global_batch_, "sequences per step; 0: the micro-batches of all replicas").range(0, 1e7);
  o.add("micro-batch-size", micro_batch_, "sequences per micro-batch; 0: a replica's share of the batch, or 1 in a pipeline")
      .range(0, 1e7);
  o.add("gradient-accumulation-steps", accumulation_, "micro-batches per step of a replica; 0: from the batch sizes")
      .range(0, 1e7);
  o.add(
       "document-mask", document_mask_.documents,
       "separate the documents of a sample: no attention and no targets across borders, and positions restart. TOKEN ends a "
       "document; FILE.idx lists them; random:MEAN draws them")
      .words("none|TOKEN|FILE.idx|random:MEAN");
  o.add("split-documents", document_mask_.split, "cut documents that are longer than a sequence")
      .only_where("separate documents",
                  [this] { return document_mask_.documents == "none" ? "document-mask is none" : ""; });
  o.add("train-iters", steps_, "training steps").range(1, 1e9);
  o.section("optimizer");
  o.add("optimizer", optimizer_, "update rule").one_of({"adamw", "sgd"}).also("adam", "adamw");
  o.add("no-master-weights", no_masters_,
        "update bf16 weights in place with stochastic rounding (no f32 master copy; saves 4 B/param)");
  declare_rate(o);
  o.add("weight-decay", decay_, "weight decay; biases and norms do not decay").range(0, 100);
  o.add("adam-beta1", beta1_, "decay of Adam's first moment").range(0, 0.999999).only_with("optimizer", {"adamw"});
  o.add("adam-beta2", beta2_, "decay of Adam's second moment").range(0, 0.999999).only_with("optimizer", {"adamw"});
  o.add("adam-eps", epsilon_, "added to the square root of the second moment").range(0, 1).only_with("optimizer", {"adamw"});
  o.add("sgd-momentum", momentum_, "momentum of sgd").range(0, 1).only_with("optimizer", {"sgd"});
  o.add("clip-grad", clip_, "clip the gradient to this norm; 0: no clipping").range(0, 1e9);
  o.add("initial-loss-scale", first_scale_, "loss scale of the first step").range(1, 0x1p40).only_with("dtype", {"f16"});
  o.add("loss-scale-window", scale_window_, "good steps before the loss scale doubles")
      .range(1, 1e9)
      .only_with("dtype", {"f16"});
  o.add("hysteresis", hysteresis_, "overflows before the loss scale halves").range(1, 1e6).only_with("dtype", {"f16"});
  o.section("the run");
  o.add("seed", seed_, "seed of initial weights, data order and dropout").range(0, 9e18);
  o.add("threads", threads_, "threads per rank; 0: its share of the cores").range(0, 4096);
}

void Flags::declare_experts(Options& o) {
  Experts& e = shape_.experts;
  const auto dense = [&e] { return e.count == 0 ? "num-experts is 0" : ""; };
  const auto of_experts = [&](Option& option) -> Option& { return option.only_where("a model with experts", dense); };
  o.section("experts");
  o.add("num-experts", e.count, "experts of a block; 0: every MLP is dense").range(0, 1e5);
  of_experts(o.add("moe-router-topk", e.chosen, "experts that a token chooses").range(1, 1e5));
  of_experts(o.add("moe-ffn-hidden-size", e.ffn, "width of an expert; 0: ffn-hidden-size").range(0, 1e7));
  of_experts(o.add("moe-shared-expert-intermediate-size", e.shared_ffn, "width of an expert that takes every token; 0: none")
                 .range(0, 1e7));
  of_experts(o.add("expert-interval", e.every, "every n-th block has experts, the others a dense MLP").range(1, 1e4));
  of_experts(o.add("moe-router-score-function", e.score, "how logits become scores").one_of({"softmax", "sigmoid"}));
  of_experts(o.add("moe-router-pre-softmax", e.before_choice,
                   "softmax over all experts instead of the chosen ones; their weights then add up to less than 1"));
  of_experts(o.add("moe-router-topk-scaling-factor", e.scale, "multiplies the weights of the chosen experts").range(0, 1e6));
  of_experts(
      o.add("moe-router-num-groups", e.groups, "groups of experts; a token chooses among its best groups").range(1, 1e5));
  of_experts(o.add("moe-router-group-topk", e.chosen_groups, "groups that a token may choose from").range(1, 1e5));
  of_experts(o.add("moe-expert-capacity-factor", dropless, capacity_,
                   "an expert takes at most this factor × topk × seq-length / experts tokens of a sequence")
                 .range(1e-6, 1e6));
  of_experts(o.add("moe-aux-loss-coeff", e.balance, "coefficient of the balance loss").range(0, 1e6));
  of_experts(o.add("moe-z-loss-coeff", e.z, "coefficient of the router's z-loss").range(0, 1e6));
  of_experts(o.add("moe-router-load-balancing-type", e.balancing,
                   "shares of experts in the balance loss: of the sequence (seq) or of the previous step (global)")
                 .one_of({"seq_aux_loss", "global_aux_loss"}));
  of_experts(o.add("moe-router-enable-expert-bias", e.bias,
                   "choose experts by score + bias, and move the biases after each step toward equal loads"));
  o.add("moe-router-bias-update-rate", e.bias_rate, "by how much a step moves a bias")
      .range(0, 1e6)
      .only_with("moe-router-enable-expert-bias", {"true"});
  of_experts(o.add("routing", e.routing,
                   "who chooses experts: the router, or a rule for measurements that knows only the token's position")
                 .one_of(routing_names()));
}

void Flags::require_shape(const ModelShape& model, const std::string& path) const {
  const ModelShape asked = unchecked_shape();
  for (const ShapeOption& option : shape_options)
    if (!option.may_change && option.text(asked) != option.text(model))
      refuse_shape(option.name, option.text(asked), option.text(model), path);
}

void Flags::require_own_shape(const ModelShape& model, const std::string& path) const {
  for (const ShapeOption& option : shape_options) {
    const std::string& origin = options_->origin(option.name);
    const bool told = options_->find(option.name)->source >= Source::environment || origin.starts_with("preset ");
    const bool shorter = std::string(option.name) == "seq-length" && shape_.sequence <= model.sequence;
    if (told && !shorter && !option.may_change)
      refuse_shape(option.name, option.text(unchecked_shape()), option.text(model), path,
                   std::string(option.name) == "seq-length" ? fmt::format(", or ask for {} at most", model.sequence) : "");
  }
  ModelShape shorter = model;
  shorter.sequence = std::min(model.sequence, shape_.sequence);
  require_shape(shorter, path);
}

void Flags::refuse_shape(const std::string& name, const std::string& asked, const std::string& there,
                         const std::string& path, const std::string& otherwise) const {
  const std::string& origin = options_->origin(name);
  usage_error("the loaded model sets the shape",
              fmt::format("{} is given as {} ({}), but is {} in {}", name, asked, origin, there, path),
              fmt::format("leave --{} out{}", origin.starts_with("preset ") ? "preset" : name, otherwise));
}

void Flags::declare_rate(Options& o) {
  const auto rises = [this] {
    return rate_.warmup > 0 || warmup_share_ > 0 || is_deepspeed_scheduler(rate_.decay) ? "" : "lr-warmup-iters is 0";
  };
  const auto falls = [this] {
    const bool stays = rate_.decay == "constant" || rate_.decay == "WarmupLR";
    return stays && warmup_share_ == 0 ? "lr-decay-style is " + rate_.decay : "";
  };
  o.add("lr", rate_.peak, "highest learning rate").range(0, 100);
  o.add_relative("min-lr", "lr", lowest_rate_, "lowest rate, at the end; absolute, or relative such as 0.1*lr")
      .range(0, 100)
      .only_with("lr-decay-style", {"linear", "cosine", "wsd", "WarmupCosineLR"});
  o.add("lr-decay-style", rate_.decay, "how the rate falls; the Warmup… styles are DeepSpeed's schedulers")
      .one_of({"constant", "linear", "cosine", "wsd", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"})
      .also("WSD", "wsd");
  o.add("lr-decay-iters", decay_steps_, "steps until the rate is lowest; 0: train-iters")
      .range(0, 1e9)
      .only_where("a rate that falls", falls);
  o.add("lr-warmup-iters", rate_.warmup, "steps in which the rate rises")
      .range(0, 1e9)
      .only_with("lr-warmup-fraction", {"0"});
  o.add("lr-warmup-fraction", warmup_share_, "warm-up as a share of lr-decay-iters; 0: use lr-warmup-iters").range(0, 1);
  o.add_relative("lr-warmup-init", "lr", first_rate_, "rate before the first step of the warm-up")
      .range(0, 100)
      .only_where("a warm-up", rises);
  o.add("lr-warmup-style", rate_.warmup_style, "how the rate rises")
      .one_of({"linear", "log"})
      .only_where("a warm-up", rises);
  o.add("lr-wsd-decay", rate_.wsd_share, "share of the run in which the wsd rate falls")
      .range(0, 1)
      .only_with("lr-decay-style", {"wsd"});
}

// global batch = micro-batch × accumulation steps × replicas. Computes the sizes that were given as 0 from the other sizes.
// If accumulation steps were given, the sizes must satisfy the equation.
void Flags::take_batch(TrainingOptions& o, const Layout& layout) const {
  const std::int64_t replicas = layout.replicas();
  o.global_batch = global_batch_;
  o.micro_batch = micro_batch_;
  const std::int64_t steps = std::max<std::int64_t>(accumulation_, 1);
  if (global_batch_ == 0) {
    if (micro_batch_ == 0)
      usage_error("no batch size is given", "global-batch-size and micro-batch-size are both 0",
                  "give one of them: --global-batch-size 32");
    o.global_batch = micro_batch_ * steps * replicas;
  }
  if (micro_batch_ == 0 && accumulation_ == 0)
    o.micro_batch = layout.stages() > 1 ? 1 : std::max<std::int64_t>(1, o.global_batch / replicas);
  if (accumulation_ == 0) return;
  if (micro_batch_ == 0) o.micro_batch = o.global_batch / (steps * replicas);
  if (o.micro_batch * steps * replicas == o.global_batch && o.micro_batch > 0) return;
  const std::string micro = micro_batch_ ? fmt::format("micro-batch-size {} × ", micro_batch_) : "";
  const std::int64_t whole = std::max<std::int64_t>(o.micro_batch, 1) * steps * replicas;
  usage_error("batch sizes do not agree",
              fmt::format("global-batch-size {} is {} {}gradient-accumulation-steps {} × replicas {}", o.global_batch,
                          micro.empty() ? "not a multiple of" : "not", micro, steps, replicas),
              fmt::format("try --global-batch-size {}, or remove one of the sizes", whole));
}

ModelShape Flags::unchecked_shape() const {
  ModelShape shape = shape_;
  shape.ffn = ffn_ ? ffn_ : 4 * shape_.width;
  shape.groups = groups_ ? groups_ : shape_.heads;
  shape.tied = !untied_;
  if (shape.experts.count > 0 && shape.experts.ffn == 0) shape.experts.ffn = shape.ffn;
  shape.experts.capacity = capacity_.value_or(0);
  return shape;
}

ModelShape Flags::shape() const {
  const ModelShape shape = unchecked_shape();
  shape.check();
  return shape;
}

LearningRate Flags::rate() const {
  LearningRate rate = rate_;
  rate.steps = decay_steps_ ? decay_steps_ : steps_;
  if (warmup_share_ > 0) rate.warmup = static_cast<std::int64_t>(warmup_share_ * static_cast<double>(rate.steps));
  rate.minimum = std::min(lowest_rate_.of(rate.peak), rate.peak);
  rate.first = std::min(first_rate_.of(rate.peak), rate.peak);
  return rate;
}

TrainingOptions Flags::training(int threads, const Layout& layout) const {
  TrainingOptions o{.shape = shape()};
  o.remake = recompute_ == "full" ? Remake::full : recompute_ == "selective" ? Remake::selective : Remake::none;
  o.compute = dtype_named(dtype_);
  o.numerics = numerics_;
  take_batch(o, layout);
  o.packed = document_mask_.documents != "none";
  o.optimizer = optimizer_;
  o.masters = !no_masters_;
  o.beta1 = beta1_, o.beta2 = beta2_, o.epsilon = epsilon_, o.decay = decay_, o.momentum = momentum_;
  o.clip = clip_;
  o.rate = rate();
  if (o.compute == DType::f16)
    o.scaler = {.dynamic = true,
                .scale = first_scale_,
                .growth_interval = scale_window_,
                .hysteresis = hysteresis_,
                .patience = hysteresis_};
  o.seed = static_cast<std::uint64_t>(seed_);
  o.threads = threads_ ? static_cast<int>(threads_) : threads;
  return o;
}

}  // namespace chorale::train
