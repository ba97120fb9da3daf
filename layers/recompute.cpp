#include "layers/recompute.hpp"

#include <utility>

namespace chorale {

Tensor Recompute::forward(const Tensor& x, Context& context) {
  if (context.tape) context.tape->keep(context.boundary->part(x, context));
  Tape* const tape = std::exchange(context.tape, nullptr);
  const Tensor y = inner_->forward(x, context);
  context.tape = tape;
  return y;
}

Tensor Recompute::backward(const Tensor& dy, Context& context) {
  const Tensor x = context.boundary->restored(context.tape->take(), context);
  Tape again;
  Tape* const tape = std::exchange(context.tape, &again);
  ChoiceCounts* const choices = std::exchange(context.choices, nullptr);  // the first pass has counted them
  inner_->forward(x, context);
  context.choices = choices;
  const Tensor dx = inner_->backward(dy, context);
  context.tape = tape;
  return dx;
}

}  // namespace chorale
