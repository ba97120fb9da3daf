// The history of a training, to compare with another's bit by bit: at every step the loss, the gradient norm, and a
// fingerprint of every weight, moment and gradient. If two histories differ, the first difference names the step, the tensor
// and its collectives.
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
  std::string failure = "";  // why it ended before its last step; "" if it did not
  double failed_at = 0;      // seconds, by this rank's clock

  std::string text() const;  // lossless, to send between ranks
  static History read(const std::string& text);
};

struct Difference {
  std::int64_t step = 0;       // from 1
  std::string tensor;          // or "loss", "gradient norm"
  std::int64_t differing = 0;  // tensors of its kind at that step
};

// The first difference between `seen` and `expected`, if any; a failed history is compared up to its last step. The order is
// that of a step: the loss, the gradients in the order of the backward pass, their norm, then moments and weights. A wrong
// gradient makes its norm wrong, and a wrong norm all weights, so the first difference is the origin.
std::optional<Difference> first_difference(const History& expected, const History& seen, const ModelShape& shape);

// The collectives that this layout applies to a tensor: "tp all_reduce, dp reduce_scatter".
std::string collectives_behind(const std::string& tensor, const ModelShape& shape, const Layout& layout);

}  // namespace chorale::prove
