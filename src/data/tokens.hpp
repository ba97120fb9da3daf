// The input of training: a source of tokens, which is split into samples. A sample has `sequence` tokens plus one, so that
// every position has a next token. Neighboring samples of a file share one token:
//
//   tokens    t0 t1 t2 t3 t4 t5 t6 …       sequence 3
//   sample 0  t0 t1 t2 t3                  inputs t0 t1 t2, targets t1 t2 t3
//   sample 1           t3 t4 t5 t6
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/data/documents.hpp"

namespace chorale {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t vocabulary() const = 0;  // every token is below this
  virtual std::int64_t count() const = 0;       // number of tokens; 2^50 if endless
  // Reads a sample of out.size() − 1 tokens, plus the next token.
  virtual void read(std::int64_t sample, std::span<std::int32_t> out) const = 0;

  std::int64_t samples(std::int64_t sequence) const { return std::max<std::int64_t>(0, count() - 1) / sequence; }
};

// Buffers for several samples, shaped [samples, sequence].
struct SampleRows {
  std::span<std::int32_t> inputs, targets;  // a target of −1 does not count in the loss
  std::span<std::int32_t> positions = {};   // index of each token in its document; empty: each sample is one document
};

inline void fill_batch(const TokenSource& source, std::span<const std::int64_t> samples, std::int64_t sequence,
                       const SampleRows& rows, const Documents& documents = {}) {
  const auto length = static_cast<std::size_t>(sequence);
  require(rows.inputs.size() == samples.size() * length && rows.targets.size() == rows.inputs.size(),
          "{} samples of {} tokens do not fill {} inputs and {} targets", samples.size(), sequence, rows.inputs.size(),
          rows.targets.size());
  std::vector<std::int32_t> row(length + 1);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    source.read(samples[i], row);
    const auto part = [&](std::span<std::int32_t> all) { return all.subspan(i * length, length); };
    std::copy(row.begin(), row.end() - 1, part(rows.inputs).begin());
    std::copy(row.begin() + 1, row.end(), part(rows.targets).begin());
    if (!rows.positions.empty())
      documents.mark(samples[i] * sequence, part(rows.inputs), part(rows.targets), part(rows.positions));
  }
}

// Masks the targets of the first two thirds of each sample, so that some ranks have no targets when ranks split sequences.
inline void mask_early_targets(std::span<std::int32_t> targets, std::int64_t sequence) {
  for (std::size_t first = 0; first < targets.size(); first += static_cast<std::size_t>(sequence))
    std::ranges::fill(targets.subspan(first, static_cast<std::size_t>(sequence * 2 / 3)), -1);
}

}  // namespace chorale
