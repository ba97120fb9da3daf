#include "src/data/bpe.hpp"

#include <algorithm>
#include <map>

#include "src/base/random.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

const std::string rhyme =
    "How much wood would a woodchuck chuck\nif a woodchuck could chuck wood?\n  He'd chuck, he would, as much as he "
    "could.\n";

}  // namespace

TEST_CASE("training merges the most frequent pair, on ties the smaller pair") {
  // The pair "ab" occurs three times, so it is merged first. After that, " ab" and "abc" occur twice each. " ab" comes
  // first, because the space is a smaller token than "ab". After these merges, no pair occurs twice.
  const Tokenizer tokenizer = train_bpe("abcd abc ab", 300);
  CHECK(tokenizer.bytes_of(256) == "ab");
  CHECK(tokenizer.bytes_of(257) == " ab");
  CHECK(tokenizer.vocabulary() == 258);
  CHECK(tokenizer.encode("abcd abc ab") == std::vector<std::int32_t>{256, 'c', 'd', 257, 'c', 257});
  CHECK(train_bpe("xyxy", 257).bytes_of(256) == "xy");
  CHECK(train_bpe("aaaa", 300).vocabulary() == 257);  // after "aa", the pair "aa" "aa" occurs only once
}

TEST_CASE("decoding restores any bytes") {
  const Tokenizer learned = train_bpe(rhyme, 320);
  REQUIRE(learned.vocabulary() > 270);
  for (const Tokenizer& tokenizer : {Tokenizer(), learned}) {
    CHECK(tokenizer.decode(tokenizer.encode(rhyme)) == rhyme);
    CHECK(tokenizer.encode("").empty());
    const Random random{.seed = 4};
    for (std::uint64_t length = 1; length < 300; ++length) {
      std::string noise;
      for (std::uint64_t i = 0; i < length; ++i) noise.push_back(static_cast<char>(random.bits(1000 * length + i)));
      if (length % 2) noise += rhyme.substr(length % rhyme.size());
      REQUIRE(tokenizer.decode(tokenizer.encode(noise)) == noise);
    }
  }
  CHECK(learned.encode(rhyme).size() < rhyme.size() / 2);
  CHECK(Tokenizer().encode(rhyme).size() == rhyme.size());
  CHECK_THROWS_WITH(learned.decode({1000}), says("token 1000 is outside the vocabulary"));
}

TEST_CASE("a tokenizer is written to a file and read back") {
  const Tokenizer tokenizer = train_bpe(rhyme + rhyme, 330);
  const Tokenizer again = Tokenizer::from_json(tokenizer.json(), "rhyme");
  CHECK(again.merges() == tokenizer.merges());
  CHECK(again.encode(rhyme) == tokenizer.encode(rhyme));
  CHECK(Tokenizer::from_json(Tokenizer().json(), "bytes").vocabulary() == 256);
  CHECK_THAT(tokenizer.json(), says("\"\u0120chuck\""));  // GPT-2 writes a space as Ġ
}

TEST_CASE("training learns the merges that a full recount of all pairs at each step gives") {
  std::string text = rhyme;  // repetitions of one letter are appended below, because pairs overlap in them
  for (std::size_t length = 1; length < 40; ++length)
    text += std::string(length, 'a') + '.' + std::string(length, 'a') + 'b';
  std::vector<std::vector<std::int32_t>> pieces;
  std::string_view piece;
  for (Pieces all(text); all.next(piece);) pieces.push_back(Tokenizer().encode(piece));
  const Tokenizer tokenizer = train_bpe(text, 400);
  REQUIRE(tokenizer.merges().size() > 40);
  for (const Tokenizer::Merge& learned : tokenizer.merges()) {
    std::map<Tokenizer::Merge, int> counts;
    for (const auto& tokens : pieces)
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) ++counts[{tokens[i], tokens[i + 1]}];
    const auto most = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; });
    REQUIRE(learned == most->first);  // of the most frequent pairs, the smallest is merged
    const auto token = static_cast<std::int32_t>(256 + (&learned - tokenizer.merges().data()));
    for (auto& tokens : pieces)
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
        if (tokens[i] == learned[0] && tokens[i + 1] == learned[1]) {
          tokens[i] = token;
          tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
}

TEST_CASE("a file that is not a tokenizer is refused") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(Tokenizer::from_json(text, "some.bpe"),
                      says("some.bpe is not a supported byte-level tokenizer") && says(why));
  };
  refused("Call me Ishmael.", "parse error");
  refused("{}", "model");
  const std::string whole = train_bpe("abab abab", 260).json();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  refused(changed("\"a b\"", "\"zz b\""), "merge 0, \"zz b\"");
  refused(changed("\"a b\"", "\"ab\""), "merge 0, \"ab \"");
  refused(changed("\"q\": 113", "\"qqq\": 113"), "lacks the byte 113");
  refused(changed("\"q\": 113", "\"q\": -1"), "has the number -1");
  CHECK_THROWS_WITH(Tokenizer::named("no.bpe"), says("\"no.bpe\" is not a readable file"));
  CHECK(Tokenizer::named("bytes").vocabulary() == 256);
  CHECK_THROWS_WITH(train_bpe("a", 255), says("255 tokens"));
}
