// The options that define a model's shape. Presets and stored models can set these options, as users can.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <chorale/model.hpp>
#include "src/base/options.hpp"
#include "src/base/settings.hpp"

namespace chorale::train {

// Returns each model preset as values of these options.
std::vector<Preset> presets();
// Both functions return a stored model's shape as values of these options. The first reads a checkpoint; its result is empty
// if there is no readable checkpoint. The second reads a Hugging Face model folder.
Foreign read_checkpoint_shape(const std::filesystem::path& path);
Foreign read_hugging_face_shape(const std::filesystem::path& folder);

// Returns ", 0.53 of them active" (in millions) for a model with experts, because a token uses only some of the parameters;
// else "".
std::string words_for_active(const ModelShape& shape);

class ShapeOptions {
 public:
  void declare(Options& options);
  ModelShape shape() const;  // throws if the shape is invalid
  // Both functions throw a usage error with the two values if an option contradicts the shape of a stored model.
  // require_own_shape allows a shorter sequence. It refuses any other shape option that the command line, the environment or
  // a preset sets, even if the values agree.
  void require_shape(const ModelShape& model, const std::string& path) const;
  void require_own_shape(const ModelShape& model, const std::string& path) const;

 private:
  [[noreturn]] void refuse_shape(const std::string& name, const std::string& asked, const std::string& there,
                                 const std::string& path, const std::string& otherwise = "") const;

  const Options* options_ = nullptr;         // the declared options, which know the source of each value
  ModelShape shape_{.groups = 0, .ffn = 0};  // derived, unless an option sets them
};

}  // namespace chorale::train
