// What a training was at every step, as numbers that can be held against another's: the loss and the norm to their bits,
// and a fingerprint of every weight, moment and gradient. And what to say where two histories part: the step, the tensor,
// and the collective that brings it together.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallel/layout.hpp"

namespace chorale::prove {

struct StepState {
  double loss = 0, gradient_norm = 0;
  std::map<std::string, std::uint64_t> prints;  // by tensor
};

struct History {
  std::vector<StepState> steps;
  double seconds = 0;
  std::string failure = "";  // why it ended before its last step, and when
  double failed_at = 0;      // seconds, by the clock of the rank that has written this

  std::string text() const;  // to travel between ranks, losing no bit
  static History read(const std::string& text);
};

struct Difference {
  std::int64_t step = 0;       // from 1
  std::string tensor;          // or "loss", "gradient norm"
  std::int64_t differing = 0;  // tensors of its kind at that step
};

// Nothing, or where `seen` first differs from `expected`, as far as it got if it failed. In the order in
// which a step makes them: its loss, gradients as the backward pass has them, their norm, then moments and weights. A wrong
// gradient spoils its norm, and a norm all weights, so what comes first is what tells.
std::optional<Difference> first_difference(const History& expected, const History& seen, const ModelShape& shape);

// The collectives between ranks of this layout through which a tensor goes: "tp all_reduce, dp reduce_scatter".
std::string collectives_behind(const std::string& tensor, const ModelShape& shape, const Layout& layout);

}  // namespace chorale::prove
