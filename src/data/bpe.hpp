// Tokenizers convert text to tokens and back. Decoding the tokens of any byte sequence returns the same bytes.
//
// Byte-level byte-pair encoding (Sennrich et al. 2016; GPT-2) starts with a vocabulary of the 256 bytes. Training then
// repeatedly adds the most frequent pair of adjacent tokens. Encoding merges pairs in the order in which they were learned,
// and only within the pre-tokens of the text (pretokenizer.hpp). Vocabularies made by train_bpe number the bytes first and
// then the result of each merge. Vocabularies from Hugging Face number tokens differently and can have added tokens. An
// added token is a string such as <|endoftext|> that becomes one token wherever it appears in a text.
//
//   named("bytes")             one token per byte
//   named("english.bpe")       a file in tokenizer.json's format, such as train-bpe writes
//   named("folder")            a model's folder with tokenizer.json, or with vocab.json and merges.txt
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/data/pretokenizer.hpp"

namespace chorale {

struct AddedToken {
  std::string text;
  std::int32_t token;
};

// The data of a tokenizer.
struct TokenizerParts {
  std::vector<std::string> bytes;                        // the bytes of each token; "" if no token has this id
  std::array<std::int32_t, 256> of_byte;                 // indexed by byte: the token of that byte
  std::vector<std::array<std::int32_t, 2>> merges = {};  // the pairs to merge, in order of priority
  std::vector<std::int32_t> made = {};                   // the token that results from each merge
  std::vector<AddedToken> added = {};
  std::vector<std::int32_t> opening = {};  // tokens added before every text, such as <|begin_of_text|>
  Cut cut = Cut::gpt2;
  bool whole_first = false;  // a pre-token that is itself a token is not split, even if the merges would give a different
                             // result
};

class Tokenizer {
 public:
  using Merge = std::array<std::int32_t, 2>;

  explicit Tokenizer(std::vector<Merge> merges = {});  // merge i makes token 256 + i; without merges, each byte is a token
  explicit Tokenizer(TokenizerParts parts);
  static Tokenizer named(const std::string& name);

  std::int64_t vocabulary() const { return static_cast<std::int64_t>(parts_.bytes.size()); }
  const std::vector<Merge>& merges() const { return parts_.merges; }
  const std::vector<std::int32_t>& opening() const { return parts_.opening; }
  std::vector<std::int32_t> encode(std::string_view text, const std::function<void(std::size_t)>& progress = {}) const;
  std::string decode(const std::vector<std::int32_t>& tokens) const;
  const std::string& bytes_of(std::int32_t token) const;

  std::string json() const;  // the contents of tokenizer.json; only for vocabularies made by train_bpe
  static Tokenizer from_json(const std::string& text, const std::string& name);
  // Makes a tokenizer from vocab.json and merges.txt. added_tokens.json ("{}" if the file does not exist) lists the added
  // tokens, such as <|endoftext|>.
  static Tokenizer from_vocabulary_and_merges(const std::string& vocabulary_json, const std::string& merges,
                                              const std::string& added_json, const std::string& name);

 private:
  std::vector<std::int32_t> encode_piece(std::string_view piece) const;
  const AddedToken* added_at(std::string_view text, std::size_t place) const;

  TokenizerParts parts_;
  std::unordered_map<std::uint64_t, std::int32_t> merge_of_pair_;
  std::unordered_map<std::string, std::int32_t> whole_;  // all tokens, if whole_first is set
  std::array<std::vector<AddedToken>, 256> added_;       // indexed by first byte, longest first
};

// Learns merges until the vocabulary is full or no pair occurs twice. If two pairs are equally frequent, the pair with the
// smaller token ids is merged first. Training on a book takes seconds: each distinct pre-token is stored once with its
// count, and a merge accesses only the pre-tokens that contain the merged pair.
Tokenizer train_bpe(std::string_view text, std::int64_t vocabulary, const std::function<void(std::int64_t)>& progress = {});

}  // namespace chorale
