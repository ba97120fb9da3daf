// A layer is local mathematics: it never communicates. Strategies wrap or replace layers, so every place where a model communicates
// stands in parallel/.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/context.hpp"

namespace chorale {

// What a layer says it keeps for its backward pass; held against the bytes that are really kept. A layer's output and the next one's
// input are one tensor, kept if either keeps it.
struct Keeps {
  std::int64_t input = 0;   // bytes of its input, if it keeps that
  std::int64_t inside = 0;  // bytes of what lies between: statistics, tensors between the layers it is made of
  std::int64_t output = 0;  // bytes of its output, if it keeps that
  bool output_can_be_made_again = false;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual const std::string& name() const = 0;
  virtual Tensor forward(const Tensor& x, Context& context) = 0;
  virtual Tensor backward(const Tensor& dy,
                          Context& context) = 0;  // the gradient of its input; those of weights are added to theirs
  virtual void each_parameter(const std::function<void(const ParameterPointer&)>&) const {}
  virtual void each_site(const std::function<void(Site&)>&) {}  // where it makes sums besides its parameters' gradients
  virtual Keeps keeps(std::int64_t rows, const Context& context) const = 0;
};

using LayerPointer = std::unique_ptr<Layer>;

}  // namespace chorale
