// Training data: a source of tokens, split into samples, and the function by which a training run reads its samples.
//
//   tokens    t0 t1 t2 t3 t4 t5 t6 …       sequence 3
//   sample 0  t0 t1 t2 t3                  inputs t0 t1 t2, targets t1 t2 t3
//   sample 1           t3 t4 t5 t6
//
// A sample has one token more than the sequence, so that every position has a next token. Neighboring samples share a token.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace chorale {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t vocabulary() const = 0;  // every token id is below this number
  virtual std::int64_t count() const = 0;       // number of tokens; 2^50 if endless
  // Reads a sample of out.size() − 1 tokens, plus the next token.
  virtual void read(std::int64_t sample, std::span<std::int32_t> out) const = 0;

  std::int64_t samples(std::int64_t sequence) const { return std::max<std::int64_t>(0, count() - 1) / sequence; }
};

// A synthetic language of endless length, generated from a seed. The entropy of the language is known, so the lowest
// possible loss of a model is known too.
std::unique_ptr<TokenSource> synthetic_language(std::int64_t vocabulary, std::uint64_t seed);

// Buffers for several samples, shaped [samples, sequence].
struct SampleRows {
  std::span<std::int32_t> inputs, targets;  // a target of −1 does not count in the loss
  std::span<std::int32_t> positions = {};   // index of each token in its document; empty if each sample is a document
};

// Fills the rows of `samples` samples, beginning with sample number `first`. If rows.positions is not empty, the caller has
// already set each position to the token's index in the sample. A reader of packed samples overwrites these positions.
using ReadSamples = std::function<void(std::int64_t first, std::int64_t samples, const SampleRows& rows)>;

// Returns a function that reads the samples of `source` in ascending order, each as one document. `source` must outlive the
// returned function.
ReadSamples in_order(const TokenSource& source, std::int64_t sequence);

}  // namespace chorale
