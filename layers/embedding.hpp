// Maps each token id to a vector. The vector is the id's row of the token table, plus the row of the token's position if
// positions are learned. Dropout is applied last. The layer keeps no activations for the backward pass, because the ids are
// input data. If the table's rows are split between ranks, a rank returns zeros for an id whose row is on a different rank.
#pragma once
#include <chorale/model.hpp>
#include "layers/layer.hpp"

namespace chorale {

class Embedding final : public Layer {
 public:
  Embedding(const ModelShape& shape, std::uint32_t site, const Sharding& sharding);

  const ParameterPointer& table() const { return table_; }  // shared by a tied head
  Tensor forward(const Tensor& ids, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;  // returns an empty tensor: ids have no gradient
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  Keeps keeps(std::int64_t, const Context&) const override { return {}; }

 private:
  ParameterPointer table_, positions_;
  double dropout_;
  std::uint32_t site_;
};

}  // namespace chorale
