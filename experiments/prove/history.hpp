// The history of a training run has, for every step, the loss, the gradient norm, and a fingerprint (hash) of every weight,
// moment and gradient. Two histories are compared bit by bit. The first difference names a step and a tensor.
// collectives_behind() names the collectives that can have caused the difference.
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
  std::string failure = "";  // the error that ended the run before its last step; "" if the run completed
  double failed_at = 0;      // time of the failure, in seconds of the rank's clock

  std::string text() const;  // a string to send between ranks; lossless, except that newlines in `failure` become ";"
  static History read(const std::string& text);
};

struct Difference {
  std::int64_t step = 0;  // counted from 1
  // Name of the tensor, "loss", "choices" (how often each expert was chosen), "gradient norm", or "its end" if the run ended
  // before this step.
  std::string tensor;
  std::int64_t differing = 0;  // number of tensors of the same kind that differ at that step
};

// Returns the first difference between `seen` and `expected`, if there is any. A failed run is compared up to its last
// complete step. Values are compared in the order in which a step computes them: loss, expert choices, gradients (in
// backward order), gradient norm, moments, weights. A wrong gradient makes the norm wrong, and a wrong norm makes the
// weights wrong. Thus the first difference is not a consequence of another difference.
std::optional<Difference> first_difference(const History& expected, const History& seen, const ModelShape& shape);

// Returns the collectives that can have made a tensor wrong with this layout: "tp all_reduce, dp reduce_scatter".
std::string collectives_behind(const std::string& tensor, const ModelShape& shape, const Layout& layout);

}  // namespace chorale::prove
