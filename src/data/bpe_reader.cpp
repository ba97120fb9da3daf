// Reads tokenizer.json of Hugging Face's `tokenizers`, and GPT-2's older pair of vocab.json and merges.txt. An unsupported
// feature causes an error that names the feature, because ignoring it would give wrong tokens.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/text.hpp"
#include "src/data/bpe.hpp"
#include "src/data/byte_alphabet.hpp"

namespace chorale {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_tokenizer(const std::string& name, const std::string& why) {
  usage_error(fmt::format("{} is not a supported byte-level tokenizer", name), shortened(why),
              "make one with: chorale data train-bpe TEXT --vocabulary 4096 --out FILE");
}

std::string shown(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Collects the parts of a tokenizer from a file. `bytes` is the size of the file.
class BpeReader {
 public:
  BpeReader(const std::string& name, std::size_t bytes)
      : name_(name), bytes_(bytes), limit_(std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes), 1 << 16, 1 << 24)) {}

  void vocabulary(const Json& words) {
    for (const auto& [word, number] : words.items()) {
      const std::int32_t token = checked(number, word);
      token_of_[word] = token;
      place(token, bytes_of_word(word).value_or(word));  // a special token can contain any characters
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = token_of_.find(readable(std::string(1, static_cast<char>(byte))));
      if (found == token_of_.end())
        refuse_tokenizer(name_, fmt::format("its vocabulary of {} lacks the byte {}", words.size(), byte));
      parts.of_byte[static_cast<std::size_t>(byte)] = found->second;
    }
  }

  void merge(const std::string& left, const std::string& right) {
    const auto a = token_of_.find(left), b = token_of_.find(right), whole = token_of_.find(left + right);
    if (a == token_of_.end() || b == token_of_.end() || whole == token_of_.end())
      refuse_tokenizer(name_, fmt::format("merge {}, \"{} {}\", uses tokens that its vocabulary lacks", parts.merges.size(),
                                          left, right));
    parts.merges.push_back({a->second, b->second});
    parts.made.push_back(whole->second);
  }

  void merge_line(const std::string& line) {
    const std::size_t gap = line.find(' ');
    merge(line.substr(0, gap), gap == std::string::npos ? "" : line.substr(gap + 1));
  }

  void added(const std::string& text, const Json& number) {
    if (text.empty()) return;
    const std::int32_t token = checked(number, text);
    place(token, text);
    parts.added.push_back({text, token});
  }

  bool knows(const std::string& word) const { return token_of_.contains(word); }
  std::int32_t token_of(const std::string& word) const { return token_of_.at(word); }

  TokenizerParts parts;

 private:
  std::int32_t checked(const Json& number, const std::string& word) const {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 || number.get<std::int64_t>() >= limit_)
      refuse_tokenizer(name_, fmt::format("token \"{}\" has the number {}; in {} bytes, numbers are 0 to {}",
                                          shortened(escape_control(word), 40), shown(number), bytes_, limit_ - 1));
    return number.get<std::int32_t>();
  }
  void place(std::int32_t token, const std::string& bytes) {
    const auto at = static_cast<std::size_t>(token);
    if (at >= parts.bytes.size()) parts.bytes.resize(at + 1);
    parts.bytes[at] = bytes;
  }

  const std::string& name_;
  std::size_t bytes_;
  // Memory is needed for every token id up to the largest, so a small file with one large id could exhaust memory. A file
  // has at least one byte per token. Ids larger than the file size are therefore refused; the limit is at least 2^16 and at
  // most 2^24.
  std::int64_t limit_;
  std::map<std::string, std::int32_t> token_of_;
};

// Returns the steps of a processor: the members if the processor is a "Sequence", no steps if it is null, and otherwise the
// processor itself.
std::vector<Json> listed(const Json& value, const char* members) {
  if (value.is_null()) return {};
  if (value.value("type", "") != "Sequence") return {value};
  return value.at(members).get<std::vector<Json>>();
}

constexpr const char* gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Cut cut_of(const Json& pre_tokenizer, const std::string& name) {
  std::optional<Cut> cut;
  bool bytes = false, digits = false;
  for (const Json& step : listed(pre_tokenizer, "pretokenizers")) {
    const std::string type = step.value("type", "");
    const bool last = type == "ByteLevel" && !bytes;
    if (last && !step.value("add_prefix_space", true)) {
      bytes = true;
      if (step.value("use_regex", true) && cut) refuse_tokenizer(name, "its text is split by two patterns");
      if (step.value("use_regex", true)) cut = Cut::gpt2;
    } else if (type == "Digits" && step.value("individual_digits", false) && !bytes) {
      digits = true;
    } else if (type == "Split" && !bytes && !cut && step.at("pattern").contains("Regex") &&
               step.value("behavior", "") == "Isolated" && !step.value("invert", false)) {
      const auto pattern = step.at("pattern").at("Regex").get<std::string>();
      if (pattern == gpt2_pattern) cut = Cut::gpt2;
      if (pattern == llama3_pattern) cut = Cut::llama3;
      if (!cut)
        refuse_tokenizer(name,
                         fmt::format("its text is split by a pattern that is neither GPT-2's nor Llama 3's: {}", pattern));
    } else {
      refuse_tokenizer(name, fmt::format("its pre_tokenizer has the step {}", shown(step)));
    }
  }
  if (!bytes || !cut || (digits && *cut != Cut::gpt2))
    refuse_tokenizer(name, fmt::format("its pre_tokenizer is {}", shown(pre_tokenizer)));
  return digits ? Cut::digits : *cut;
}

// Returns the tokens that a post-processor adds before a text. The step "ByteLevel" adds no tokens.
std::vector<std::int32_t> opening_of(const Json& post_processor, const std::string& name) {
  std::vector<std::int32_t> opening;
  for (const Json& step : listed(post_processor, "processors")) {
    const std::string type = step.value("type", "");
    if (type == "ByteLevel") continue;
    if (type != "TemplateProcessing") refuse_tokenizer(name, fmt::format("its post_processor has the step {}", type));
    bool text_came = false;
    for (const Json& part : step.at("single")) {
      if (part.contains("Sequence")) {
        text_came = true;
        continue;
      }
      if (text_came) refuse_tokenizer(name, "its template puts tokens after a text");
      const auto id = part.at("SpecialToken").at("id").get<std::string>();
      for (const Json& token : step.at("special_tokens").at(id).at("ids")) opening.push_back(token.get<std::int32_t>());
    }
  }
  return opening;
}

void read_added(const Json& file, BpeReader& reader, const std::string& name) {
  for (const Json& token : file.value("added_tokens", Json::array())) {
    const auto text = token.at("content").get<std::string>();
    for (const char* option : {"single_word", "lstrip", "rstrip"})
      if (token.value(option, false))
        refuse_tokenizer(name, fmt::format("its added token \"{}\" is {}", escape_control(text), option));
    reader.added(text, token.at("id"));
  }
}

}  // namespace

Tokenizer Tokenizer::from_json(const std::string& text, const std::string& name) {
  BpeReader reader(name, text.size());
  try {
    const Json file = Json::parse(text), &model = file.at("model");
    if (model.value("type", "BPE") != "BPE") refuse_tokenizer(name, fmt::format("its model is {}", model.at("type").dump()));
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (model.contains(affix) && !model[affix].is_null() && model[affix] != "")
        refuse_tokenizer(name, fmt::format("its {} is {}", affix, shown(model[affix])));
    if (file.contains("normalizer") && !file["normalizer"].is_null())
      refuse_tokenizer(name, fmt::format("its normalizer changes the text: {}", shown(file["normalizer"]).substr(0, 100)));
    reader.parts.cut = cut_of(file.value("pre_tokenizer", Json()), name);
    reader.parts.opening = opening_of(file.value("post_processor", Json()), name);
    reader.parts.whole_first = model.value("ignore_merges", false);
    reader.vocabulary(model.at("vocab"));
    for (const Json& line : model.at("merges"))
      if (line.is_array())
        reader.merge(line.at(0), line.at(1));
      else
        reader.merge_line(line);
    read_added(file, reader, name);
  } catch (const nlohmann::json::exception& error) {
    refuse_tokenizer(name, reason_of(error));
  }
  return Tokenizer(std::move(reader.parts));
}

Tokenizer Tokenizer::from_vocabulary_and_merges(const std::string& vocabulary_json, const std::string& merges,
                                                const std::string& added_json, const std::string& name) {
  BpeReader reader(name, vocabulary_json.size() + merges.size() + added_json.size());
  try {
    reader.vocabulary(Json::parse(vocabulary_json));
    if (const char* end = "<|endoftext|>"; reader.knows(end)) reader.added(end, reader.token_of(end));
    const Json added = Json::parse(added_json);
    for (const auto& [text, number] : added.items()) reader.added(text, number);
  } catch (const nlohmann::json::exception& error) {
    refuse_tokenizer(name, reason_of(error));
  }
  for (std::string line : split(merges, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) reader.merge_line(line);
  }
  return Tokenizer(std::move(reader.parts));
}

}  // namespace chorale
