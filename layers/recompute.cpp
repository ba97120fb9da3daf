// Full recomputation (Chen et al. 2016): the layer keeps only its input and repeats its forward pass before the backward
// pass. Full recomputation costs a third more arithmetic and reduces a block's activations to one tensor. A dropout mask
// depends only on the seed, step, layer and token, so the repeated pass uses the same mask. Ranks that share the layer can
// split the kept input between them (P_a of ZeRO-R, Rajbhandari et al. 2020). The kept input can be stored in a slow tier
// (kept_inputs.hpp).
#include "layers/layers.hpp"

#include <utility>

#include "layers/wrapping.hpp"

namespace chorale {
namespace {

class RecomputingLayer final : public WrappingLayer {
 public:
  using WrappingLayer::WrappingLayer;

  Tensor forward(const Tensor& x, Context& context) override {
    if (context.tape) {
      const Tensor part = context.boundary->part(x, context);
      context.kept_inputs ? context.kept_inputs->keep(part) : context.tape->keep(part);
    }
    Tape* const tape = std::exchange(context.tape, nullptr);
    const Tensor y = inner_->forward(x, context);
    context.tape = tape;
    return y;
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    const Tensor part = context.kept_inputs ? context.kept_inputs->take() : context.tape->take();
    const Tensor x = context.boundary->restored(part, context);
    Tape again;
    Tape* const tape = std::exchange(context.tape, &again);
    ChoiceCounts* const choices = std::exchange(context.choices, nullptr);  // the first forward pass has already counted the
                                                                            // choices
    inner_->forward(x, context);
    context.choices = choices;
    const Tensor dx = inner_->backward(dy, context);
    context.tape = tape;
    return dx;
  }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    if (context.kept_inputs) return {};  // the input is in memory only while it is written or read
    const std::int64_t here = context.boundary->rows(rows);
    return {.input = inner_->keeps(rows, context).input / here * context.boundary->kept_rows(rows)};
  }
};

}  // namespace

LayerPointer recomputing_layer(LayerPointer inner) { return std::make_unique<RecomputingLayer>(std::move(inner)); }

}  // namespace chorale
