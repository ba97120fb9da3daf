// Turns each token id into a vector: its row of the token table, plus its position's row if positions are learned, then
// dropout. For the backward pass the layer keeps the ids, which are data, not activations. If the rows of the table are
// split between ranks, a rank gets zeros for ids whose row is on another rank.
#pragma once
#include "layers/layer.hpp"
#include "layers/shape.hpp"

namespace chorale {

class Embedding final : public Layer {
 public:
  Embedding(const ModelShape& shape, std::uint32_t site, const Sharding& sharding);

  const std::string& name() const override { return name_; }
  const ParameterPointer& table() const { return table_; }  // shared by a tied head
  Tensor forward(const Tensor& ids, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;  // returns no tensor: ids have no gradient
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  Keeps keeps(std::int64_t, const Context&) const override { return {}; }

 private:
  std::string name_ = "embedding";
  ParameterPointer table_, positions_;
  double dropout_;
  std::uint32_t site_;
};

}  // namespace chorale
