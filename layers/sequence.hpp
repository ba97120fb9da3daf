// A layer that runs several layers in sequence.
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Sequence final : public Layer {
 public:
  using Layer::Layer;
  Sequence& add(LayerPointer layer) {
    layers_.push_back(std::move(layer));
    return *this;
  }
  std::vector<LayerPointer>& layers() { return layers_; }  // strategies wrap and replace these layers

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  std::vector<LayerPointer> layers_;
};

}  // namespace chorale
