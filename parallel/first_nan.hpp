// A NaN is named where it is born: the step, the layer, the tensor, the place, the rank. Nothing looks while all is well; when a step's loss
// or gradients are no numbers, all ranks compute the step again, looking at every tensor, and go through it to its end.
//
//   rank 0   ✓ ✓ ✓ ✗ ✗      a sum or a message with a NaN in it is one too, on other ranks, and later in the model's own order: micro-batch,
//   rank 1   ✓ ✗ ✗ ✗ ✗      pass, part of the model, tensor after tensor. So the earliest of all ranks is where it was born.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "parallel/axis.hpp"
#include "src/base/error.hpp"

namespace chorale {

class FirstNan {
 public:
  // Where in the step: the micro-batch, whether it comes back, and how many parts of the model it has passed on that way.
  struct Place {
    std::int64_t micro_batch = -1;  // −1: before the first
    bool back = false;
    std::int64_t passed = 0;
  };

  explicit FirstNan(std::int64_t step) : step_(step) {}
  void look(const Place& place, const char* what, const std::string& where, const Tensor& tensor);
  void take(const Place& place, const std::optional<Error>& trouble);  // what another found there
  // On all ranks: throws the earliest on each of them, if there is one.
  void throw_first(Axis& world) const;

 private:
  void keep(const Place& place, const std::string& what, const std::string& numbers, const std::string& fix);

  using Key = std::array<std::int64_t, 4>;
  std::int64_t step_, looks_ = 0;
  Key first_{INT64_MAX};
  std::array<std::string, 3> lines_;
};

}  // namespace chorale
