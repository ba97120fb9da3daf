#include "layers/sequence.hpp"

#include <algorithm>

#include "src/math/kernel_timer.hpp"

namespace chorale {

Tensor Sequence::forward(const Tensor& x, Context& context) {
  Tensor y = x;
  for (const LayerPointer& layer : layers_) {
    {
      const LayerSpan span(context.queue, layer->name());
      y = layer->forward(y, context);
    }
    context.look("output", layer->name(), y);
    context.layer_is_done();
  }
  return y;
}

Tensor Sequence::backward(const Tensor& dy, Context& context) {
  Tensor dx = dy;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    {
      const LayerSpan span(context.queue, (*layer)->name());
      dx = (*layer)->backward(dx, context);
    }
    if (dx) context.look("input gradient", (*layer)->name(), dx);
    context.layer_is_done();
  }
  return dx;
}

void Sequence::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  for (const LayerPointer& layer : layers_) layer->each_parameter(visit);
}

void Sequence::each_site(const std::function<void(SumSite&)>& visit) {
  for (const LayerPointer& layer : layers_) layer->each_site(visit);
}

Keeps Sequence::keeps(std::int64_t rows, const Context& context) const {
  Keeps all, before;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Keeps here = layers_[i]->keeps(rows, context);
    const bool recipe = context.selective() && before.output_can_be_made_again;
    if (i == 0)
      all.input = here.input;
    else
      all.inside += std::max(before.output, recipe ? 0 : here.input);
    all.inside += here.inside;
    all.at_most |= here.at_most;
    before = here;
  }
  all.output = before.output;
  all.output_can_be_made_again = before.output_can_be_made_again;
  return all;
}

}  // namespace chorale
