// Tests the reader of vocabularies in Hugging Face's formats, in which token ids are arbitrary. The tests generate the
// files.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/data/bpe.hpp"
#include "src/data/byte_alphabet.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

// Returns the 256 tokens of single bytes. GPT-2 numbers printable bytes first, so "!" is 0, "a" is 64, and " " is 220.
Json vocabulary() {
  Json words = Json::object();
  std::vector<int> order;
  for (int byte = 0; byte < 256; ++byte)
    if ((byte > 32 && byte < 127) || (byte > 160 && byte != 173)) order.push_back(byte);
  for (int byte = 0; byte < 256; ++byte)
    if (std::find(order.begin(), order.end(), byte) == order.end()) order.push_back(byte);
  for (const int byte : order) words[readable({static_cast<char>(byte)})] = words.size();
  return words;
}

// A small tokenizer file. Token 258 is "the", 259 is " the", and 260 is unused. Token 261 is <|end|>, an added token. It is
// also in the vocabulary.
Json small() {
  Json words = vocabulary();
  words["th"] = 257;
  words["he"] = 256;
  words["the"] = 258;
  words["\u0120the"] = 259;
  words["<|end|>"] = 261;
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  return {{"added_tokens",
           {{{"id", 261}, {"content", "<|end|>"}, {"special", true}},
            {{"id", 270}, {"content", "<|end|>>"}, {"special", true}},
            {{"id", 262}, {"content", "<<"}, {"special", false}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", words}, {"merges", {"t h", "th e", "\u0120 the", "h e"}}}}};
}

Tokenizer read(const Json& file) { return Tokenizer::from_json(file.dump(), "there/tokenizer.json"); }

}  // namespace

TEST_CASE("a tokenizer read from Hugging Face's format keeps its token numbers") {
  const Tokenizer t = read(small());
  CHECK(t.vocabulary() == 271);
  CHECK(t.encode("a !") == Ids{64, 220, 0});
  CHECK(t.encode("the the he") == Ids{258, 259, 220, 256});
  CHECK(t.bytes_of(259) == " the");
  CHECK(t.bytes_of(260).empty());  // token 260 is unused
  CHECK(t.decode({258, 259, 261, 220, 256}) == "the the<|end|> he");
  for (const std::string text : {"the \xff cat\n\n  the<|end|>the", "", "<", "ünï — 漢"})
    CHECK(t.decode(t.encode(text)) == text);
}

TEST_CASE("added tokens are matched first, the longest first, and split the text") {
  const Tokenizer t = read(small());
  CHECK(t.encode("the<|end|>the") == Ids{258, 261, 258});
  CHECK(t.encode("<|end|>><|end|>") == Ids{270, 261});
  CHECK(t.encode("<<<|end|>") == Ids{262, 261});
  CHECK(t.encode(" <<the") == Ids{220, 262, 258});
}

TEST_CASE("merges apply in file order, the leftmost first, and two merges may make one token") {
  Json file = small();
  auto& model = file["model"];
  model["vocab"]["aa"] = 263;
  model["vocab"]["aaa"] = 264;
  model["merges"] = {"aa a", "a a", "a aa"};  // the merge "aa a" can apply only after the merge "a a"
  CHECK(read(file).encode("aaa") == Ids{264});
  CHECK(read(file).encode("aaaa") == Ids{264, 64});
  CHECK(read(file).encode("aaaaaa") == Ids{264, 264});
  model["merges"] = {"a a", "aa a"};
  CHECK(read(file).encode("aaaaa") == Ids{263, 264});
  model["merges"] = Json::array({Json::array({"a", "a"})});  // newer files write a merge as an array
  CHECK(read(file).encode("aaa") == Ids{263, 64});
}

TEST_CASE("with ignore_merges, a piece that is a token stays whole") {
  Json file = small();
  file["model"]["vocab"]["zebra"] = 265;
  CHECK(read(file).encode("zebra").size() == 5);
  file["model"]["ignore_merges"] = true;
  CHECK(read(file).encode("zebra the") == Ids{265, 259});
}

TEST_CASE("the patterns of GPT-2 and Llama 3 and the Digits step are supported") {
  Json file = small();
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto split = [](const std::string& pattern) {
    return Json{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  };
  const auto sequence = [&](const Json& first, const Json& second) {
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {first, second}}};
    return read(file);
  };
  file["model"]["vocab"]["12"] = 266;
  file["model"]["vocab"]["12\u0120"] = 267;
  file["model"]["vocab"]["the."] = 268;
  file["model"]["merges"] = {"t h", "th e", "1 2", "the ."};
  CHECK(read(file).encode("the.12") == Ids{258, 13, 266});
  const std::string llama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                             R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const Tokenizer by_threes = sequence(split(llama3), bytes);
  CHECK(by_threes.encode("1212") == Ids{266, 16, 17});  // the text is split into "121" and "2"
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  CHECK(sequence(digits, {{"type", "ByteLevel"}, {"add_prefix_space", false}}).encode("1212") == Ids{16, 17, 16, 17});
  CHECK_THROWS_WITH(sequence(digits, bytes), says("its pre_tokenizer is"));
}

TEST_CASE("the tokens that open a text are kept apart from the text's own tokens") {
  Json file = small();
  const Json special = {{"<|end|>", {{"id", "<|end|>"}, {"ids", {261}}, {"tokens", {"<|end|>"}}}}};
  Json single = Json::array({{{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}}}}});
  const Json bytes = file["post_processor"];
  const auto processed = [&] {
    file["post_processor"] = {
        {"type", "Sequence"},
        {"processors", {bytes, {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}}}}};
    return read(file);
  };
  CHECK(processed().opening() == Ids{261});
  CHECK(processed().encode("the") == Ids{258});
  std::swap(single[0], single[1]);
  CHECK_THROWS_WITH(processed(), says("after a text"));
}

TEST_CASE("the error for an unsupported feature of a tokenizer names the feature") {
  const auto refused = [](auto change, const std::string& why) {
    Json file = small();
    change(file);
    CHECK_THROWS_WITH(read(file), says("there/tokenizer.json is not a supported byte-level tokenizer") && says(why));
  };
  refused([](Json& f) { f["model"]["type"] = "Unigram"; }, "Unigram");
  refused([](Json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }, "</w>");
  refused([](Json& f) { f["normalizer"] = {{"type", "NFC"}}; }, "NFC");
  refused([](Json& f) { f["pre_tokenizer"] = {{"type", "Metaspace"}}; }, "Metaspace");
  refused([](Json& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer is null");
  refused([](Json& f) { f["pre_tokenizer"]["add_prefix_space"] = true; }, "add_prefix_space");
  refused([](Json& f) { f["added_tokens"][0]["lstrip"] = true; }, "\"<|end|>\" is lstrip");
  refused([](Json& f) { f["model"]["vocab"].erase("q"); }, "lacks the byte 113");
  refused([](Json& f) { f["model"]["merges"][0] = "t x"; }, "merge 0, \"t x\"");
  refused([](Json& f) { f["model"]["vocab"]["q"] = 1e9; }, "has the number");
  // The reader's memory use grows with the largest token id, so a small file with a large token id must be refused.
  refused([](Json& f) { f["added_tokens"][0]["id"] = (1 << 24) - 1; }, "has the number 16777215; in ");
  refused([](Json& f) { f["model"]["merges"] = 7; }, "type must be");
  refused(
      [](Json& f) {
        f["pre_tokenizer"] = {
            {"type", "Sequence"},
            {"pretokenizers", {{{"type", "Split"}, {"pattern", {{"Regex", "\\w+"}}}, {"behavior", "Isolated"}}}}};
      },
      "neither GPT-2's nor Llama 3's: \\w+");
}

TEST_CASE("a folder is read with either kind of tokenizer files") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  Json words = small()["model"]["vocab"];
  words["<|endoftext|>"] = 263;
  write("vocab.json", words.dump());
  write("added_tokens.json", R"({"<|end|>": 261})");
  write("merges.txt", "#version: 0.2\nt h\r\nth e\n\u0120 the\n\n");
  const Tokenizer pair = Tokenizer::named(folder.path().string());
  CHECK(pair.encode("the the<|end|><|endoftext|>he") == Ids{258, 259, 261, 263, 71, 68});
  write("tokenizer.json", small().dump());
  CHECK(Tokenizer::named(folder.path().string()).encode("<<") == Ids{262});
  CHECK_THROWS_WITH(Tokenizer::named((folder / "none").string()), says("is not a readable file"));
}

}  // namespace chorale::test
