// Tokenizers: text to numbers and back, any bytes, nothing lost.
//
// Byte-level byte-pair encoding (Sennrich et al. 2016; GPT-2): a vocabulary begins as the 256 bytes and grows by the most frequent pair
// of neighbours, again and again. Encoding merges pairs within pieces of the text (pieces.hpp), the pair that was learnt first before all
// others. A vocabulary of ours numbers the bytes first and then what each merge makes. One of Hugging Face's has numbers of its own, and
// added tokens: words such as <|endoftext|>, which stand for themselves wherever they appear in a text.
//
//   named("bytes")             one token a byte
//   named("english.bpe")       a file in the form of tokenizer.json: ours is too
//   named("folder")            a model's folder, with tokenizer.json, or with vocab.json and merges.txt
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/data/pieces.hpp"

namespace chorale {

struct AddedToken {
  std::string text;
  std::int32_t token;
};

// Everything that a tokenizer is made of.
struct TokenizerParts {
  std::vector<std::string> bytes;                        // of each token; "" for a number that no token has
  std::array<std::int32_t, 256> of_byte;                 // the tokens of single bytes
  std::vector<std::array<std::int32_t, 2>> merges = {};  // the first is merged first
  std::vector<std::int32_t> made = {};                   // by each merge
  std::vector<AddedToken> added = {};
  std::vector<std::int32_t> opening = {};  // what stands before every text: <|begin_of_text|>
  Cut cut = Cut::gpt2;
  bool whole_first = false;  // a piece that is a token is that token, whatever merges would make of it
};

class Tokenizer {
 public:
  using Merge = std::array<std::int32_t, 2>;

  explicit Tokenizer(std::vector<Merge> merges = {});  // the i-th makes token 256 + i; none: one token a byte
  explicit Tokenizer(TokenizerParts parts);
  static Tokenizer named(const std::string& name);

  std::int64_t vocabulary() const { return static_cast<std::int64_t>(parts_.bytes.size()); }
  const std::vector<Merge>& merges() const { return parts_.merges; }
  const std::vector<std::int32_t>& opening() const { return parts_.opening; }
  std::vector<std::int32_t> encode(std::string_view text, const std::function<void(std::size_t)>& progress = {}) const;
  std::string decode(const std::vector<std::int32_t>& tokens) const;
  const std::string& bytes_of(std::int32_t token) const;

  std::string json() const;  // of one of ours
  static Tokenizer from_json(const std::string& text, const std::string& name);
  // From vocab.json and merges.txt; added_tokens.json ("{}" where there is none) names tokens that stand for themselves, as <|endoftext|> does.
  static Tokenizer from_vocabulary_and_merges(const std::string& vocabulary_json, const std::string& merges,
                                              const std::string& added_json, const std::string& name);

 private:
  std::vector<std::int32_t> encode_piece(std::string_view piece) const;
  const AddedToken* added_at(std::string_view text, std::size_t place) const;

  TokenizerParts parts_;
  std::unordered_map<std::uint64_t, std::int32_t> merge_of_pair_;
  std::unordered_map<std::string, std::int32_t> whole_;  // tokens that pieces may be at once
  std::array<std::vector<AddedToken>, 256> added_;       // by their first byte, the longest first
};

// Learns merges until the vocabulary is full or no pair comes twice; the smaller pair wins a tie. Seconds for a book: each distinct
// piece is looked at once, with its count, and a merge touches only the pieces that have its pair.
Tokenizer train_bpe(std::string_view text, std::int64_t vocabulary, const std::function<void(std::int64_t)>& progress = {});

}  // namespace chorale
