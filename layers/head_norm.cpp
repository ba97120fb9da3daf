// An RMSNorm of every query head and every key head (Qwen3), applied between the qkv matrix and the rotation. All query
// heads share one gain, and all key heads share a second one. The values are not normalized. The norm of a head depends on
// this head only, so a tensor rank normalizes only the heads that it has. The gradient of a gain is summed over the heads of
// all tensor ranks.
//
//   qkv [T, groups·(queries+2)·d] ─┬─ q q k ─ norm ─┬─ qkv, in place
//                                  └─── v ──────────┘
//
// For the backward pass the layer keeps copies of the queries and keys, and two values per head.
#include "layers/layers.hpp"

#include <array>
#include <ranges>

#include "src/math/heads.hpp"

namespace chorale {
namespace {

class HeadNorm final : public Layer {
 public:
  HeadNorm(const std::string& attention, const HeadNormOptions& o) : Layer(attention + ".head_norm"), epsilon_(o.epsilon) {
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

  Tensor forward(const Tensor& qkv, Context& context) override {
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

  Tensor backward(const Tensor& dqkv, Context& context) override {
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

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    for (const Kind& kind : kinds_) visit(kind.gain);
  }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    Keeps keeps;
    for (const auto& [heads, gain] : kinds_)
      keeps.inside +=
          rows * heads.units * heads.count * (heads.width * size_of(context.compute) + 2 * size_of(context.statistics()));
    return keeps;
  }

 private:
  struct Kind {
    SomeHeads heads;
    ParameterPointer gain;
  };
  double epsilon_;
  std::array<Kind, 2> kinds_;  // queries, keys
};

}  // namespace

LayerPointer head_norm_layer(const std::string& attention, const HeadNormOptions& options) {
  return std::make_unique<HeadNorm>(attention, options);
}

}  // namespace chorale
