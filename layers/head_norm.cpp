#include "layers/head_norm.hpp"

#include <ranges>

namespace chorale {

HeadNorm::HeadNorm(const std::string& attention, const Options& o) : Layer(attention + ".head_norm"), epsilon_(o.epsilon) {
  const auto kind = [&](const char* which, std::int64_t first, std::int64_t count) {
    return Kind{{.units = o.groups, .heads = o.queries + 2, .first = first, .count = count, .width = o.width},
                std::make_shared<Parameter>(Parameter{.name = attention + which,
                                                      .shape = {o.width},
                                                      .start = 1,
                                                      .decays = false,
                                                      .sum = SumOf::token_gradients,
                                                      .of_heads = true,
                                                      .uses = o.all_groups * count})};
  };
  kinds_ = {kind(".query_norm.gain", 0, o.queries), kind(".key_norm.gain", o.queries, 1)};
}

Tensor HeadNorm::forward(const Tensor& qkv, Context& context) {
  for (const auto& [heads, gain] : kinds_) {
    const Shape shape{qkv.dim(0) * heads.units * heads.count, heads.width};
    const Tensor x = context.tensor(shape), stats = context.typed({shape[0], 2}, context.statistics());
    const Tensor y = context.typed(shape, x.dtype(), Category::workspace);
    copy_heads(qkv, heads, x, false, context.queue);
    norm_forward(NormKind::rms, x, gain->value, nullptr, epsilon_, y, stats, context.queue);
    copy_heads(qkv, heads, y, true, context.queue);  // in place, because the layer that computed qkv does not keep qkv
    if (!context.tape) continue;
    context.tape->keep(x);
    context.tape->keep(stats);
  }
  return qkv;
}

Tensor HeadNorm::backward(const Tensor& dqkv, Context& context) {
  for (const auto& [heads, gain] : std::views::reverse(kinds_)) {
    const Tensor stats = context.tape->take(), x = context.tape->take();
    const Tensor dy = context.tensor(x.shape()), dx = context.typed(x.shape(), x.dtype(), Category::workspace);
    copy_heads(dqkv, heads, dy, false, context.queue);
    norm_backward(NormKind::rms, dy, x, gain->value, stats, nullptr, dx, context.queue);
    copy_heads(dqkv, heads, dx, true, context.queue);  // in place, because no layer keeps the gradient of its output
    context.weight_gradient([dy, x, stats, gain = gain, &context] {
      context.numerics.add_norm_gradients(NormKind::rms, dy, x, stats, gain->gradient, nullptr, gain->site, context.queue);
      context.ready(*gain);
    });
  }
  return dqkv;
}

void HeadNorm::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  for (const Kind& kind : kinds_) visit(kind.gain);
}

Keeps HeadNorm::keeps(std::int64_t rows, const Context& context) const {
  Keeps keeps;
  for (const auto& [heads, gain] : kinds_)
    keeps.inside +=
        rows * heads.units * heads.count * (heads.width * size_of(context.compute) + 2 * size_of(context.statistics()));
  return keeps;
}

}  // namespace chorale
