#include "layers/recompute.hpp"

#include <utility>

namespace chorale {

Tensor RecomputingLayer::forward(const Tensor& x, Context& context) {
  if (context.tape) {
    const Tensor part = context.boundary->part(x, context);
    context.kept_inputs ? context.kept_inputs->keep(part) : context.tape->keep(part);
  }
  Tape* const tape = std::exchange(context.tape, nullptr);
  const Tensor y = inner_->forward(x, context);
  context.tape = tape;
  return y;
}

Tensor RecomputingLayer::backward(const Tensor& dy, Context& context) {
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

}  // namespace chorale
