// Tokenizers: text to numbers and back, any bytes, nothing lost.
//
// Byte-level byte-pair encoding (Sennrich et al. 2016; GPT-2): a vocabulary begins as the 256 bytes and grows by the most frequent pair
// of neighbours, again and again. Encoding merges in the order learnt. Pairs never cross the bounds of pieces:
//
//   "It's 1984,  said he."  →  It | 's | " 1984" | , | " " | " said" | " he" | .
//
// A piece is GPT-2's: 's 't 're 've 'm 'll 'd; or letters, or digits, or other marks, each with at most one space before; or white space,
// the last of which goes with what follows if it is a space. Bytes from 128 on count as letters: the scanner knows no Unicode classes, so
// an em dash joins the word beside it. Files are the tokenizer.json of Hugging Face's `tokenizers`; with other text than ASCII
// that library may cut pieces otherwise.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chorale {

class Tokenizer {
 public:
  using Merge = std::array<std::int32_t, 2>;  // the i-th makes token 256 + i of these two

  explicit Tokenizer(std::vector<Merge> merges = {});  // none: one token a byte
  static Tokenizer named(const std::string& name);     // "bytes", or a file

  std::int64_t vocabulary() const { return static_cast<std::int64_t>(bytes_.size()); }
  const std::vector<Merge>& merges() const { return merges_; }
  std::vector<std::int32_t> encode(std::string_view text, const std::function<void(std::size_t)>& progress = {}) const;
  std::string decode(const std::vector<std::int32_t>& tokens) const;
  const std::string& bytes_of(std::int32_t token) const;

  std::string json() const;
  static Tokenizer from_json(const std::string& text, const std::string& name);

 private:
  std::vector<std::int32_t> encode_piece(std::string_view piece) const;

  std::vector<Merge> merges_;
  std::vector<std::string> bytes_;  // of each token
  std::unordered_map<std::uint64_t, std::int32_t> token_of_pair_;
};

std::string_view next_piece(std::string_view text);  // the first piece of a text that is not empty

// Learns merges until the vocabulary is full or no pair comes twice; the smaller pair wins a tie. Seconds for a book: each distinct
// piece is looked at once, with its count, and a merge touches only the pieces that have its pair.
Tokenizer train_bpe(std::string_view text, std::int64_t vocabulary, const std::function<void(std::int64_t)>& progress = {});

}  // namespace chorale
