// The options that define a model's shape. Users, presets and stored models can set these options.
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
// read_checkpoint_shape and read_hugging_face_shape return a stored model's shape as values of these options.
// read_checkpoint_shape returns an empty result if there is no readable checkpoint. read_hugging_face_shape reads a Hugging
// Face model folder.
Foreign read_checkpoint_shape(const std::filesystem::path& path);
Foreign read_hugging_face_shape(const std::filesystem::path& folder);

// Returns ", 0.53 of them active" (in millions) for a model with experts, in which a token uses only some of the parameters;
// otherwise returns "".
std::string words_for_active(const ModelShape& shape);

class ShapeOptions {
 public:
  void declare(Options& options);
  ModelShape shape() const;  // throws if the shape is invalid
  // require_shape and require_own_shape throw a usage error with the two values if an option contradicts the shape of a
  // stored model. require_own_shape allows a shorter sequence. require_own_shape refuses any other shape option that the
  // command line, the environment or a preset sets, even if the values agree.
  void require_shape(const ModelShape& model, const std::string& path) const;
  void require_own_shape(const ModelShape& model, const std::string& path) const;

 private:
  [[noreturn]] void refuse_shape(const std::string& name, const std::string& asked, const std::string& there,
                                 const std::string& path, const std::string& otherwise = "") const;

  const Options* options_ = nullptr;         // the declared options, which know the source of each value
  ModelShape shape_{.groups = 0, .ffn = 0};  // derived, unless an option sets them
};

}  // namespace chorale::train
