// Tokenizers as files: the tokenizer.json of Hugging Face's `tokenizers`, with GPT-2's byte alphabet: bytes that print stand for
// themselves, the others for the code points from 256 on (a space is Ġ), so that every token is a readable word.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/data/bpe.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

std::string utf8(int code) {  // below 2048
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

const std::array<std::string, 256>& alphabet() {
  static const auto table = [] {
    std::array<std::string, 256> letters;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      letters[static_cast<std::size_t>(byte)] = utf8(prints ? byte : next++);
    }
    return letters;
  }();
  return table;
}

std::string readable(const std::string& bytes) {
  std::string word;
  for (const char c : bytes) word += alphabet()[static_cast<unsigned char>(c)];
  return word;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  usage_error(fmt::format("{} is no byte-level tokenizer", name), why,
              "make one with: chorale data train-bpe TEXT --vocabulary 4096 --out FILE");
}

}  // namespace

std::string Tokenizer::json() const {
  Json vocabulary = Json::object(), merges = Json::array();
  // GPT-2's order of the 256 bytes differs; ids are ours, as the file says.
  for (std::size_t token = 0; token < bytes_.size(); ++token) vocabulary[readable(bytes_[token])] = token;
  for (const auto& [left, right] : merges_) merges.push_back(readable(bytes_of(left)) + " " + readable(bytes_of(right)));
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array()},
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

// Only the merges are read, and our numbering is asked for: bytes in their order, then merges in theirs.
Tokenizer Tokenizer::from_json(const std::string& text, const std::string& name) {
  std::vector<Merge> merges;
  try {
    const Json model = Json::parse(text).at("model");
    std::map<std::string, std::int32_t> token_of;
    for (std::int32_t byte = 0; byte < 256; ++byte) token_of[alphabet()[static_cast<std::size_t>(byte)]] = byte;
    for (const Json& line : model.at("merges")) {
      const std::string merge =
          line.is_array() ? line.at(0).get<std::string>() + " " + line.at(1).get<std::string>() : line.get<std::string>();
      const std::size_t gap = merge.find(' ');
      const auto left = token_of.find(merge.substr(0, gap));
      const auto right = token_of.find(gap == std::string::npos ? "" : merge.substr(gap + 1));
      if (left == token_of.end() || right == token_of.end())
        refuse(name, fmt::format("merge {}, \"{}\", is not of two tokens that came before it", merges.size(), merge));
      merges.push_back({left->second, right->second});
      token_of[left->first + right->first] = static_cast<std::int32_t>(255 + merges.size());
    }
    for (const auto& [word, token] : model.at("vocab").items())
      if (const auto found = token_of.find(word); found == token_of.end() || found->second != token)
        refuse(name, fmt::format("token {} of its vocabulary, \"{}\", is not numbered as ours are", token.dump(), word));
    if (model.at("vocab").size() != 256 + merges.size() || token_of.size() != 256 + merges.size())
      refuse(name, fmt::format("a vocabulary of {} and {} merges do not make 256 bytes and a token a merge",
                               model.at("vocab").size(), merges.size()));
  } catch (const nlohmann::json::exception& error) {
    refuse(name, error.what());
  }
  return Tokenizer(std::move(merges));
}

Tokenizer Tokenizer::named(const std::string& name) {
  if (name == "bytes") return Tokenizer();
  std::ifstream file(name, std::ios::binary);
  if (!file)
    usage_error("there is no such tokenizer", fmt::format("\"{}\" is no file that can be read", name),
                "--tokenizer is \"bytes\", or a file that chorale data train-bpe made");
  return from_json({std::istreambuf_iterator<char>(file), {}}, name);
}

}  // namespace chorale
