#include "src/data/pretokenizer.hpp"

#include <string>
#include <vector>

#include "src/base/random.hpp"
#include "src/data/unicode.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

using Words = std::vector<std::string>;

Words pieces_of(std::string_view text, Cut cut) {
  Words words;
  std::string_view piece;
  for (Pieces pieces(text, cut); pieces.next(piece);) words.emplace_back(piece);
  return words;
}
Words gpt2(std::string_view text) { return pieces_of(text, Cut::gpt2); }
Words llama3(std::string_view text) { return pieces_of(text, Cut::llama3); }

}  // namespace

TEST_CASE("characters have Unicode's classes, and invalid bytes are marks") {
  const auto kind = [](std::string_view text) { return character_at(text, 0).kind; };
  for (const char* letter : {"a", "Z", "ï", "ß", "ª", "Ω", "ж", "ا", "漢", "ﬁ", "𝒳", "가"})
    CHECK(kind(letter) == CharacterKind::letter);
  for (const char* number : {"7", "²", "½", "٣", "Ⅷ", "𝟘", "①"}) CHECK(kind(number) == CharacterKind::number);
  for (const char* space : {" ", "\n", "\x0b", "\xc2\xa0", "\u2003", "\u3000", "\xc2\x85"})
    CHECK(kind(space) == CharacterKind::space);
  for (const char* mark : {"-", "—", "“", "€", "🙂", "\u0301", "_", "\u200b"}) CHECK(kind(mark) == CharacterKind::mark);
  CHECK(character_at("漢字", 0).bytes == 3);
  CHECK(character_at("x🙂", 1).bytes == 4);
  // Invalid UTF-8: a truncated character, a lone continuation byte, two overlong forms, a surrogate, a value beyond the last
  // code point, and a byte that UTF-8 never uses.
  for (const char* damaged : {"\xe6\xbc", "\xbc", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    CHECK(kind(damaged) == CharacterKind::mark);
    CHECK(character_at(damaged, 0).bytes == 1);
  }
}

TEST_CASE("text is split as GPT-2 splits it") {
  CHECK(gpt2("It's 1984,  said he.") == Words{"It", "'s", " 1984", ",", " ", " said", " he", "."});
  CHECK(gpt2("we'll they've I'd 'tis I'D") == Words{"we", "'ll", " they", "'ve", " I", "'d", " '", "tis", " I", "'", "D"});
  CHECK(gpt2("a\n\nb") == Words{"a", "\n", "\n", "b"});
  CHECK(gpt2("a \n  b  ") == Words{"a", " \n ", " b", "  "});
  CHECK(gpt2("x=-1;") == Words{"x", "=-", "1", ";"});
  CHECK(gpt2(" \t!") == Words{" ", "\t", "!"});
  CHECK(gpt2("na\xc3\xafve \xff") == Words{"na\xc3\xafve", " \xff"});
  CHECK(gpt2("noon—tea “now” 12½") == Words{"noon", "—", "tea", " “", "now", "”", " 12½"});
  CHECK(gpt2("a\xc2\xa0\xc2\xa0"
             "b") == Words{"a", "\xc2\xa0", "\xc2\xa0", "b"});
}

TEST_CASE("text is split as Llama 3 splits it") {
  CHECK(llama3("It's 1984,  said he.") == Words{"It", "'s", " ", "198", "4", ",", " ", " said", " he", "."});
  CHECK(llama3("I'D we'LL (so) -x") == Words{"I", "'D", " we", "'LL", " (", "so", ")", " -", "x"});
  CHECK(llama3("f(x)=1234567;\n\ny") == Words{"f", "(x", ")=", "123", "456", "7", ";\n\n", "y"});
  CHECK(llama3("a\n\n  b") == Words{"a", "\n\n", " ", " b"});
  CHECK(llama3("a \r\n \n\tb ") == Words{"a", " \r\n \n", "\tb", " "});
  CHECK(llama3("  7") == Words{" ", " ", "7"});
  CHECK(llama3("naïve—café…\n") == Words{"naïve", "—café", "…\n"});
}

TEST_CASE("digits can be separate pieces, and the text between them is split as GPT-2 splits it") {
  CHECK(pieces_of("in 1984, it's ½", Cut::digits) == Words{"in", " ", "1", "9", "8", "4", ",", " it", "'s", " ", "½"});
  CHECK(pieces_of("a  12  b", Cut::digits) == Words{"a", "  ", "1", "2", " ", " b"});
  CHECK(pieces_of("none here", Cut::digits) == Words{"none", " here"});
}

TEST_CASE("the pieces of any bytes concatenate to the text") {
  const Random random{.seed = 9};
  const std::string letters = "aZ9 \n\r'sS.\xc3\xaf\xff\xe2\x80\x94";
  for (std::uint64_t round = 0; round < 400; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < round % 40; ++i) text += letters[random.bits(round * 64 + i) % letters.size()];
    for (const Cut cut : {Cut::gpt2, Cut::digits, Cut::llama3}) {
      std::string joined;
      for (const std::string& piece : pieces_of(text, cut)) {
        REQUIRE(!piece.empty());
        joined += piece;
      }
      REQUIRE(joined == text);
    }
  }
}
