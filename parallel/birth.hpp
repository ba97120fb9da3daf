// A NaN is named where it is born: the step, the layer, the tensor, the place. Nothing looks while all is well; when a step's loss or
// gradients are no numbers, the step is computed again with somebody looking at every tensor.
#pragma once
#include <string>

#include "src/memory/tensor.hpp"

namespace chorale {

void throw_if_not_finite(std::int64_t step, const char* what, const std::string& where, const Tensor& tensor);
// What an error of the numerics says, with the step.
[[noreturn]] void throw_at_step(std::int64_t step, const Error& error);

}  // namespace chorale
