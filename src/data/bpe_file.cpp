// Writes tokenizers to files and opens them. A tokenizer made by train_bpe is written in the format of Hugging Face's
// tokenizer.json, so bpe_reader.cpp can read it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/host.hpp"
#include "src/data/bpe.hpp"
#include "src/data/byte_alphabet.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

std::string text_of(const fs::path& path) {
  const std::string why = why_no_file(path);
  auto text = why.empty() ? contents_of(path) : std::nullopt;
  if (!text)
    usage_error("there is no such tokenizer",
                fmt::format("\"{}\" is not a readable file{}", path.string(), why.empty() ? "" : ": " + why),
                "--tokenizer takes \"bytes\", a file from train-bpe, a tokenizer.json, or a folder with "
                "tokenizer.json or with vocab.json and merges.txt");
  return *std::move(text);
}

}  // namespace

std::string Tokenizer::json() const {
  require(parts_.added.empty() && parts_.opening.empty() && parts_.bytes.size() == 256 + parts_.merges.size(),
          "this vocabulary of {} tokens comes from another program; only vocabularies made by train-bpe can be written",
          parts_.bytes.size());
  OrderedJson vocabulary = OrderedJson::object(), merges = OrderedJson::array();
  // GPT-2 numbers the 256 bytes differently, which is harmless because the file states the id of each token.
  for (std::size_t token = 0; token < parts_.bytes.size(); ++token) vocabulary[readable(parts_.bytes[token])] = token;
  for (const auto& [left, right] : parts_.merges)
    merges.push_back(readable(bytes_of(left)) + " " + readable(bytes_of(right)));
  const OrderedJson byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const OrderedJson file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", OrderedJson::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocabulary},
        {"merges", merges}}},
  };
  return file.dump(1) + "\n";
}

Tokenizer Tokenizer::named(const std::string& name) {
  if (name == "bytes") return Tokenizer();
  const fs::path path(name);
  if (fs::exists(path / "vocab.json") && fs::exists(path / "merges.txt") && !fs::exists(path / "tokenizer.json"))
    return from_vocabulary_and_merges(text_of(path / "vocab.json"), text_of(path / "merges.txt"),
                                      fs::exists(path / "added_tokens.json") ? text_of(path / "added_tokens.json") : "{}",
                                      name);
  return from_json(text_of(fs::is_directory(path) ? path / "tokenizer.json" : path), name);
}

}  // namespace chorale
