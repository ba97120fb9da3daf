// The computation of a layer is local to its rank. If several ranks share a layer, the layer calls Context::boundary, which
// can communicate. Strategies wrap or replace layers, so all code that communicates is in parallel/.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/context.hpp"

namespace chorale {

// The bytes that a layer declares to keep for its backward pass. Tests compare the declared bytes with the bytes that the
// layer really keeps. A layer's output and the next layer's input are the same tensor. The tensor is kept if either of the
// two layers keeps it.
struct Keeps {
  std::int64_t input = 0;   // bytes of the layer's input; 0 if the layer does not keep its input
  std::int64_t inside = 0;  // bytes of other tensors: statistics, and tensors between the inner layers of the layer
  std::int64_t output = 0;  // bytes of the layer's output; 0 if the layer does not keep its output
  bool output_can_be_made_again = false;
  bool at_most = false;  // the byte counts are upper bounds: experts can receive fewer rows, unless the routing is forced
};

class Layer {
 public:
  explicit Layer(std::string name) : name_(std::move(name)) {}
  Layer(Layer&&) = default;
  virtual ~Layer() = default;
  const std::string& name() const { return name_; }
  virtual Tensor forward(const Tensor& x, Context& context) = 0;
  // Returns the gradient of the layer's input. Adds the gradients of the layer's weights to Parameter::gradient.
  virtual Tensor backward(const Tensor& dy, Context& context) = 0;
  virtual void each_parameter(const std::function<void(const ParameterPointer&)>&) const {}
  virtual void each_site(const std::function<void(SumSite&)>&) {}  // all SumSites except those of parameters
  virtual Keeps keeps(std::int64_t rows, const Context& context) const = 0;

 protected:
  std::string name_;
};

using LayerPointer = std::unique_ptr<Layer>;

inline std::vector<ParameterPointer> parameters_of(const Layer& layer) {
  std::vector<ParameterPointer> all;
  layer.each_parameter([&](const ParameterPointer& parameter) { all.push_back(parameter); });
  return all;
}

}  // namespace chorale
