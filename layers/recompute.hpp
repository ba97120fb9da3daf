// Full recomputation (Chen et al. 2016): the layer keeps only its input and repeats its forward pass before the backward
// pass. Full recomputation costs a third more arithmetic and reduces a block's activations to one tensor. A dropout mask
// depends only on the seed, step, layer and token, so the repeated pass uses the same mask. Ranks that share the layer can
// split the kept input between them (P_a of ZeRO-R, Rajbhandari et al. 2020). The kept input can be stored in a slow tier
// (kept_inputs.hpp).
#pragma once
#include "layers/wrapping.hpp"

namespace chorale {

class RecomputingLayer final : public WrappingLayer {
 public:
  using WrappingLayer::WrappingLayer;

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override {
    if (context.kept_inputs) return {};  // the input is in memory only while it is written or read
    const std::int64_t here = context.boundary->rows(rows);
    return {.input = inner_->keeps(rows, context).input / here * context.boundary->kept_rows(rows)};
  }
};

}  // namespace chorale
