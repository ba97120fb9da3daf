// The history of a training run: at every step the loss, the gradient norm, and a fingerprint (hash) of every weight, moment
// and gradient. Two histories are compared bit by bit. The first difference names a step and a tensor. collectives_behind()
// names the collectives that may have caused it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallel/layout/layout.hpp"

namespace chorale::prove {

struct StepState {
  double loss = 0, gradient_norm = 0;
  std::map<std::string, std::uint64_t> prints;  // fingerprints, by name of the tensor
};

struct History {
  std::vector<StepState> steps;
  double seconds = 0;        // duration of the run
  std::string failure = "";  // why the run ended before its last step; "" if it completed
  double failed_at = 0;      // when it failed, in seconds of the rank's clock

  std::string text() const;  // to send between ranks; lossless, but newlines in `failure` become ";"
  static History read(const std::string& text);
};

struct Difference {
  std::int64_t step = 0;  // counted from 1
  // Name of the tensor, "loss", "choices" (the counts of experts' choices), "gradient norm", or "its end" if the run ended
  // before this step.
  std::string tensor;
  std::int64_t differing = 0;  // how many tensors of the same kind differ at that step
};

// The first difference between `seen` and `expected`, if any; a failed run is compared up to its last complete step. Values
// are compared in the order in which a step computes them: the loss, the choices of experts, the gradients (in backward
// order), their norm, then moments and weights. A wrong gradient makes the norm wrong, and a wrong norm makes the weights
// wrong. So the first difference is not a consequence of the others.
std::optional<Difference> first_difference(const History& expected, const History& seen, const ModelShape& shape);

// The collectives that may have made a tensor wrong under this layout: "tp all_reduce, dp reduce_scatter".
std::string collectives_behind(const std::string& tensor, const ModelShape& shape, const Layout& layout);

}  // namespace chorale::prove
