// The documents in a stream of tokens. A sample can contain several consecutive documents. In such a sample, positions
// restart at each document, attention does not cross document boundaries, and the first token of a document is never a
// target. If a document crosses the end of a sample, its remaining tokens form a separate document in the next sample.
//
//   tokens      a b c . | d . | e f      "." ends a text
//   positions   0 1 2 3   0 1   0 1
//   targets     b c . −1  . −1  f …
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace chorale {

class StoredTokens;

class Documents {
 public:
  Documents() = default;  // every sample is a single document
  static Documents ending_with(std::int32_t token);
  // bounds: the position of each document's first token in the stream, and the end of the last document, in ascending order.
  static Documents between(std::vector<std::int64_t> bounds);
  // Random document boundaries with the mean distance `mean`, for checks and measurements with data that has no documents.
  static Documents random(std::int64_t mean);
  // Parses the value of --document-mask: "none", an end-of-text token such as 50256, the index file of a Megatron-LM data
  // set, or "random:100". Throws a usage error for other names.
  static Documents named(const std::string& name);

  bool any() const { return end_of_text_ >= 0 || !bounds_.empty() || mean_ > 0; }
  // Marks the documents in a sample that starts at token `first` of the stream. Fills in the positions, and masks targets
  // that are the first token of a document.
  void mark(std::int64_t first, std::span<const std::int32_t> inputs, std::span<std::int32_t> targets,
            std::span<std::int32_t> positions) const;
  // The functions below throw usage errors. require_of() throws if the index file does not match `data`.
  // require_token_below() throws if the end-of-text token is outside the vocabulary. require_shorter() throws if a document
  // has more than `longest` tokens. If an end-of-text token separates the documents, require_shorter() reads all tokens.
  void require_of(const StoredTokens& data) const;
  void require_token_below(std::int64_t vocabulary) const;
  void require_shorter(const StoredTokens& data, std::int64_t longest) const;

 private:
  // Whether the token at position `number`, which follows the token `before`, is the first token of a document.
  bool starts(std::int64_t number, std::int32_t before) const;
  std::int32_t end_of_text_ = -1;
  std::vector<std::int64_t> bounds_;
  std::int64_t mean_ = 0;
};

}  // namespace chorale
