#include "experiments/train/shape_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/state/stored_weights.hpp"
#include "src/base/error.hpp"
#include "src/base/toml.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale::train {
namespace {

// The options that define a model shape. `text` returns the option's value for a given shape.
struct ShapeOption {
  const char* name;
  std::string (*text)(const ModelShape&);
  bool may_change = false;  // true: a resumed run may have a value that differs from the checkpoint's
};

// A field of the expert options as text; empty for a dense model, to which these options do not apply.
template <class Field>
std::string of_experts(const ModelShape& s, Field Experts::*field) {
  if (s.experts.count == 0) return "";
  if constexpr (Named<Field>)
    return name_of(s.experts.*field);
  else
    return fmt::format("{}", s.experts.*field);
}

std::string routing_of(const ModelShape& s) {
  if (s.experts.count == 0) return "";
  return s.experts.routing ? name_of(*s.experts.routing) : learned_routing;
}

const std::string dropless = "dropless";

const ShapeOption shape_options[] = {
    {"family", [](const ModelShape& s) { return std::string(name_of(s.family)); }},
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
    {"routing", routing_of, true}};

std::vector<Setting> settings_of(const ModelShape& shape, const std::string& origin) {
  std::vector<Setting> settings;
  for (const ShapeOption& option : shape_options)
    if (const std::string text = option.text(shape); !text.empty()) settings.push_back({option.name, text, origin});
  return settings;
}

// The global batch size in a run's options, or 0 if it followed from other options.
std::int64_t batch_in(const std::string& toml_of_run) try {
  return toml::parse(toml_of_run)["global-batch-size"].value_or(std::int64_t{0});
} catch (const toml::parse_error&) {  // options of a different version
  return 0;
}

}  // namespace

// If a preset sets an option to 0, its value is derived: as many groups as heads, an MLP four times as wide as the model. It
// is derived again when a user overrides the number of heads or the width.
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

// Adds dropout and the batch, which `shape_options` lacks: presets do not set dropout, and the batch is not part of the
// model.
Foreign read_checkpoint_shape(const std::filesystem::path& path) {
  const Metadata metadata = metadata_of_checkpoint(path);
  const std::string origin = "model " + path.string();
  std::vector<Setting> settings = settings_of(metadata.model, origin);
  settings.push_back({"dropout", fmt::format("{}", metadata.model.dropout), origin});
  if (const std::int64_t batch = batch_in(metadata.config); batch > 0)
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

void ShapeOptions::declare(Options& o) {
  options_ = &o;
  o.section("model");
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) names.emplace_back(preset.name);
  o.add("preset", "a predefined model, such as nano; other options override its values").words("NAME").suggest(names);
  shape_.declare(o);
}

void ShapeOptions::require_shape(const ModelShape& model, const std::string& path) const {
  const ModelShape asked = shape_.completed();
  for (const ShapeOption& option : shape_options)
    if (!option.may_change && option.text(asked) != option.text(model))
      refuse_shape(option.name, option.text(asked), option.text(model), path);
}

void ShapeOptions::require_own_shape(const ModelShape& model, const std::string& path) const {
  for (const ShapeOption& option : shape_options) {
    const std::string& origin = options_->origin(option.name);
    const bool told = options_->find(option.name)->source >= Source::environment || origin.starts_with("preset ");
    const bool shorter = std::string(option.name) == "seq-length" && shape_.sequence <= model.sequence;
    if (told && !shorter && !option.may_change)
      refuse_shape(option.name, option.text(shape_.completed()), option.text(model), path,
                   std::string(option.name) == "seq-length" ? fmt::format(", or ask for {} at most", model.sequence) : "");
  }
  ModelShape shorter = model;
  shorter.sequence = std::min(model.sequence, shape_.sequence);
  require_shape(shorter, path);
}

void ShapeOptions::refuse_shape(const std::string& name, const std::string& asked, const std::string& there,
                                const std::string& path, const std::string& otherwise) const {
  const std::string& origin = options_->origin(name);
  usage_error("the loaded model sets the shape",
              fmt::format("{} is given as {} ({}), but is {} in {}", name, asked, origin, there, path),
              fmt::format("leave --{} out{}", origin.starts_with("preset ") ? "preset" : name, otherwise));
}

ModelShape ShapeOptions::shape() const {
  const ModelShape shape = shape_.completed();
  shape.check();
  return shape;
}

}  // namespace chorale::train
