#include "experiments/common/kept_tokenizer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/data/bpe.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

constexpr const char* files_of_tokenizers[] = {"tokenizer.json",
                                               "vocab.json",
                                               "merges.txt",
                                               "tokenizer.model",
                                               "added_tokens.json",
                                               "chat_template.jinja",
                                               "tokenizer_config.json",
                                               "special_tokens_map.json"};

bool has_tokenizer(const fs::path& folder) {
  return fs::exists(folder / "tokenizer.json") || fs::exists(folder / "vocab.json") ||
         fs::exists(folder / "tokenizer.model");
}

}  // namespace

std::string tokenizer_beside(const fs::path& model) {
  if (model.empty()) return "";
  std::error_code nowhere;
  const fs::path path = fs::weakly_canonical(model, nowhere);  // resolved now, because runs/latest can change later
  if (has_tokenizer(path)) return path.string();
  for (const fs::path& run : {path, path.parent_path(), path.parent_path().parent_path()})
    if (fs::exists(run / "checkpoints") && has_tokenizer(run / "tokenizer")) return (run / "tokenizer").string();
  return "";
}

void require_tokenizer(const std::string& name, std::int64_t vocabulary) {
  const std::int64_t tokens = Tokenizer::named(name).vocabulary();
  if (tokens > vocabulary)
    usage_error("the tokenizer has more tokens than the model",
                fmt::format("{} has {} tokens, the model {}", name, tokens, vocabulary),
                "name the tokenizer that made the data, or train with a larger --vocab-size");
}

void keep_tokenizer(const std::string& name, const fs::path& folder, std::int64_t positions) {
  fs::create_directories(folder);
  if (name == "bytes")
    write_file(folder / "tokenizer.json", Tokenizer().json());
  else if (!fs::is_directory(name))
    write_file(folder / "tokenizer.json", config_text(name, "--tokenizer"));
  else
    for (const char* file : files_of_tokenizers)
      if (fs::exists(fs::path(name) / file)) write_file(folder / file, config_text(fs::path(name) / file, "--tokenizer"));
  const bool whole = fs::exists(folder / "tokenizer.json"), of_gpt2 = fs::exists(folder / "vocab.json");
  if (fs::exists(folder / "tokenizer_config.json") || !(whole || of_gpt2))
    return;  // a lone tokenizer.model needs no configuration: transformers has a class for each model family
  // Without a configuration, transformers would use the tokenizer class of the model's family. That class expects special
  // tokens that this vocabulary possibly lacks.
  const nlohmann::ordered_json config = {{"tokenizer_class", whole ? "PreTrainedTokenizerFast" : "GPT2Tokenizer"},
                                         {"clean_up_tokenization_spaces", false},
                                         {"model_max_length", positions}};
  write_file(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace chorale
