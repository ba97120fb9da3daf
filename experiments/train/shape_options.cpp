#include "experiments/train/shape_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/each.hpp"
#include "layers/shape_fields.hpp"
#include "parallel/state/stored_weights.hpp"
#include "src/base/error.hpp"
#include "src/base/toml.hpp"

namespace chorale::train {
namespace {

// The settings of a shape that have an effect, for the options of a command.
std::vector<Setting> stored_settings(const ModelShape& shape, const std::string& origin) {
  std::vector<Setting> settings;
  for (const auto& [field, text] : settings_of(shape))
    if (!text.empty()) settings.push_back({field.option, text, origin});
  return settings;
}

// The global batch size in a run's options, or 0 if it was computed from other options.
std::int64_t batch_in(const std::string& toml_of_run) try {
  return toml::parse(toml_of_run)["global-batch-size"].value_or(std::int64_t{0});
} catch (const toml::parse_error&) {  // options of a different version
  return 0;
}

}  // namespace

// If a preset sets an option to 0, the option's value is derived: as many groups as heads, an MLP four times as wide as the
// model. The value is derived again when a user overrides the number of heads or the width.
std::vector<Preset> presets() {
  std::vector<Preset> all;
  for (const ModelPreset& preset : model_presets()) {
    const ModelShape& s = preset.shape;
    Preset& made = all.emplace_back(Preset{preset.name, preset.about, {}});
    ModelShape left_open = s;
    if (s.groups == s.heads) left_open.groups = 0;
    if (s.ffn == 4 * s.width) left_open.ffn = 0;
    if (s.experts.ffn == s.ffn) left_open.experts.ffn = 0;
    for (const auto& [field, text] : settings_of(left_open))
      if (!text.empty() && field.in_presets) made.values.emplace_back(field.option, text);
    made.values.emplace_back("global-batch-size", std::to_string(preset.batch));
  }
  return all;
}

// Adds the batch, which is not part of the model.
Foreign read_checkpoint_shape(const std::filesystem::path& path) {
  const Metadata metadata = metadata_of_checkpoint(path);
  const std::string origin = "model " + path.string();
  std::vector<Setting> settings = stored_settings(metadata.model, origin);
  if (const std::int64_t batch = batch_in(metadata.config); batch > 0)
    settings.push_back({"global-batch-size", std::to_string(batch), origin});
  return {settings, {}};
}

Foreign read_hugging_face_shape(const std::filesystem::path& folder) {
  return {stored_settings(shape_of_folder(folder), "model " + folder.string()), {}};
}

std::string words_for_active(const ModelShape& shape) {
  if (shape.experts.count == 0) return "";
  return fmt::format(", {:.2f} of them active", static_cast<double>(shape.active_parameters()) / 1e6);
}

void ShapeOptions::declare(Options& o) {
  options_ = &o;
  o.section("model", Effect::work);
  o.add("preset", "a predefined model, such as nano; other options override its values")
      .words("NAME")
      .suggest(names_of_rows(model_presets()));
  shape_.declare(o);
}

void ShapeOptions::require_shape(const ModelShape& model, const std::string& path) const {
  const auto asked = settings_of(shape_.completed()), there = settings_of(model);
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (const auto& [field, text] = asked[i]; !field.changeable && text != there[i].second)
      refuse_shape(field.option, text, there[i].second, path);
}

void ShapeOptions::require_own_shape(const ModelShape& model, const std::string& path) const {
  const auto asked = settings_of(shape_.completed()), there = settings_of(model);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [field, text] = asked[i];
    const Option& option = options_->option(field.option);
    const bool told = option.source >= Source::environment || option.origin.starts_with("preset ");
    const bool is_length = option.name == "seq-length", shorter = is_length && shape_.sequence <= model.sequence;
    if (told && !shorter && !field.changeable)
      refuse_shape(option.name, text, there[i].second, path,
                   is_length ? fmt::format(", or ask for {} at most", model.sequence) : "");
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
