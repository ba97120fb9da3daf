// A layer is local mathematics: it never communicates. Strategies wrap or replace layers, so all communication of a model
// is in parallel/.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/context.hpp"

namespace chorale {

// The bytes that a layer declares to keep for its backward pass; tests compare them with the bytes really kept. A layer's
// output and the next one's input are one tensor, kept if either layer keeps it.
struct Keeps {
  std::int64_t input = 0;   // bytes of its input, if it keeps that
  std::int64_t inside = 0;  // bytes in between: statistics, tensors between its inner layers
  std::int64_t output = 0;  // bytes of its output, if it keeps that
  bool output_can_be_made_again = false;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual const std::string& name() const = 0;
  virtual Tensor forward(const Tensor& x, Context& context) = 0;
  // Returns the gradient of its input; adds the gradients of its weights to theirs.
  virtual Tensor backward(const Tensor& dy, Context& context) = 0;
  virtual void each_parameter(const std::function<void(const ParameterPointer&)>&) const {}
  virtual void each_site(const std::function<void(SumSite&)>&) {}  // sites of sums other than its parameters' gradients
  virtual Keeps keeps(std::int64_t rows, const Context& context) const = 0;
};

using LayerPointer = std::unique_ptr<Layer>;

}  // namespace chorale
