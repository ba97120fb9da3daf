// A layer is local mathematics: it never communicates. Strategies wrap or replace layers, so every place where a model communicates
// stands in parallel/.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/context.hpp"

namespace chorale {

// What a layer says it keeps for its backward pass, for a number of rows; asserted against the bytes the tape holds. A layer's output that the
// next layer keeps as its input is one tensor.
struct Keeps {
  bool input = false, output = false;
  bool output_can_be_made_again = false;  // from what this layer keeps
  std::int64_t output_bytes = 0;
  std::int64_t more = 0;  // bytes of its own: statistics, …
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Tensor forward(const Tensor& x, Context& context) = 0;
  virtual Tensor backward(const Tensor& dy,
                          Context& context) = 0;  // the gradient of its input; those of weights are added to theirs
  virtual void each_parameter(const std::function<void(ParameterPointer&)>&) {}
};

using LayerPointer = std::unique_ptr<Layer>;

}  // namespace chorale
