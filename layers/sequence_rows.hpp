// Rows of complete sequences, for a layer that needs more than a rank's own tokens. The layer calls these functions without
// knowing how ranks split sequences. The default implementations assume that the rank has complete sequences;
// parallel/context overrides them.
//
//   rows of this rank's tokens ── whole ──▶ rows of all tokens, in their order ── own ──▶ rows of this rank's tokens
#pragma once
#include <cstdint>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

struct Context;

class SequenceRows {
 public:
  virtual ~SequenceRows() = default;
  virtual bool divided() const { return false; }
  virtual Tensor whole(const Tensor& own, Context&) const { return own; }  // collective
  virtual Tensor own(const Tensor& whole, Context&) const { return whole; }
  // The indices (places) of this rank's tokens in a sample of the micro-batch, ascending.
  virtual std::vector<std::int64_t> places(std::int64_t sample, const Context& context) const;
  // Returns the number of tokens per sequence on a rank, as the maximum over ranks.
  virtual std::int64_t most_tokens(const Context& context) const;

  static const SequenceRows& alone();
};

}  // namespace chorale
