// A layer that wraps an inner layer and adds work before or after it. The wrapping layer has the same name, parameters and
// sites as the inner layer.
#pragma once
#include <utility>

#include "layers/layer.hpp"

namespace chorale {

class WrappingLayer : public Layer {
 public:
  explicit WrappingLayer(LayerPointer inner) : Layer(inner->name()), inner_(std::move(inner)) {}

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    inner_->each_parameter(visit);
  }
  void each_site(const std::function<void(SumSite&)>& visit) override { inner_->each_site(visit); }
  Keeps keeps(std::int64_t rows, const Context& context) const override { return inner_->keeps(rows, context); }

 protected:
  LayerPointer inner_;
};

}  // namespace chorale
