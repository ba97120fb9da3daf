// The input of training: a source of tokens, split into samples of `sequence` tokens plus one, so that every position has
// a next token. Neighboring samples of a file share one token:
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

namespace chorale {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t vocabulary() const = 0;  // every token is below this
  virtual std::int64_t count() const = 0;       // number of tokens; 2^50 if endless
  // Reads a sample of out.size() − 1 tokens plus the next one.
  virtual void read(std::int64_t sample, std::span<std::int32_t> out) const = 0;

  std::int64_t samples(std::int64_t sequence) const { return std::max<std::int64_t>(0, count() - 1) / sequence; }
};

// inputs and targets are [samples.size(), sequence], row after row.
inline void fill_batch(const TokenSource& source, std::span<const std::int64_t> samples, std::int64_t sequence,
                       std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
  const auto length = static_cast<std::size_t>(sequence);
  require(inputs.size() == samples.size() * length && targets.size() == inputs.size(),
          "{} samples of {} tokens do not fill {} inputs and {} targets", samples.size(), sequence, inputs.size(),
          targets.size());
  std::vector<std::int32_t> row(length + 1);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    source.read(samples[i], row);
    std::copy(row.begin(), row.end() - 1, inputs.begin() + static_cast<std::ptrdiff_t>(i * length));
    std::copy(row.begin() + 1, row.end(), targets.begin() + static_cast<std::ptrdiff_t>(i * length));
  }
}

}  // namespace chorale
