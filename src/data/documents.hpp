// The documents in a stream of tokens. A sample may hold several, one after the other. Then positions restart at each
// document, attention does not cross its borders, and the first token of a document is never a target. If the end of a
// sample cuts a document, the rest of it is a separate document in the next sample.
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
  Documents() = default;  // every sample is one document
  static Documents ending_with(std::int32_t token);
  // `bounds`: where each document starts in the stream, and where the last one ends, in ascending order.
  static Documents between(std::vector<std::int64_t> bounds);
  // Random borders with this mean distance, for proofs and measurements on data without documents.
  static Documents random(std::int64_t mean);
  // Takes "none", an end-of-text token such as 50256, the index file of a Megatron data set, or "random:100". Throws a usage
  // error for other names.
  static Documents named(const std::string& name);

  bool any() const { return end_of_text_ >= 0 || !bounds_.empty() || mean_ > 0; }
  // Marks the documents in a sample that starts at token `first` of the stream: fills in the positions, and masks targets
  // that begin a document.
  void mark(std::int64_t first, std::span<const std::int32_t> inputs, std::span<std::int32_t> targets,
            std::span<std::int32_t> positions) const;
  // These throw a usage error if an index belongs to other data, if the end-of-text token is outside the vocabulary, or if a
  // document has more than `longest` tokens. The last check reads all tokens if an end-of-text token separates the
  // documents.
  void require_of(const StoredTokens& data) const;
  void require_token_below(std::int64_t vocabulary) const;
  void require_shorter(const StoredTokens& data, std::int64_t longest) const;

 private:
  // Whether token `number`, which follows the token `before`, begins a document.
  bool starts(std::int64_t number, std::int32_t before) const;
  std::int32_t end_of_text_ = -1;
  std::vector<std::int64_t> bounds_;
  std::int64_t mean_ = 0;
};

}  // namespace chorale
