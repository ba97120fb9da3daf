// Finds the step, layer, tensor, element and rank in which a NaN or Inf first occurred. A normal step does not inspect
// tensors. If a step's loss or gradients are not finite, all ranks repeat the complete step and inspect every tensor.
//
//   rank 0   ✓ ✓ ✓ ✗ ✗      A NaN spreads to other ranks through sums and messages, but only to tensors that come later in
//   rank 1   ✓ ✗ ✗ ✗ ✗      this order: micro-batch, pass, part of the model, tensor. So the earliest NaN is the origin.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "parallel/mesh/axis.hpp"
#include "src/base/error.hpp"

namespace chorale {

// Training::step() throws this error on all ranks. Weights and moments then have the same values as before the step, except
// with --update overlapped.
struct NotFinite : Error {
  NotFinite(std::int64_t step, const std::string& what, const std::string& numbers, const std::string& fix,
            bool weights_spoiled)
      : Error(Exit::runtime, "step " + std::to_string(step) + what, numbers, fix), weights_spoiled(weights_spoiled) {}
  bool weights_spoiled;  // a weight is NaN or Inf, or an update has used the gradients, so skipping the step does not help
};

class FirstNan {
 public:
  // A point in the computation of a step.
  struct Place {
    std::int64_t micro_batch = -1;  // −1: before the first micro-batch
    bool back = false;              // in the backward pass
    std::int64_t passed = 0;        // number of parts of the model that this pass has already completed
  };

  explicit FirstNan(std::int64_t step) : step_(step) {}
  void look(const Place& place, const char* what, const std::string& where, const Tensor& tensor);
  void take(const Place& place, const std::optional<Error>& trouble);  // stores a numerical error that occurred at `place`
  // All ranks must call this function. If any rank has found a NaN or Inf, throws NotFinite on all ranks and names the
  // earliest NaN or Inf.
  void throw_first(Axis& world) const;

 private:
  void keep(const Place& place, const std::string& what, const std::string& numbers, const std::string& fix);

  using Key = std::array<std::int64_t, 4>;
  std::int64_t step_, looks_ = 0;
  Key first_{INT64_MAX};
  std::array<std::string, 3> lines_;
};

}  // namespace chorale
