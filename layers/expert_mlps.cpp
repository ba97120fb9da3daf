#include "layers/expert_mlps.hpp"

#include <span>

#include "layers/context.hpp"
#include "src/math/activation.hpp"

namespace chorale {
namespace {

// Calls f(expert, its first row, its number of rows) for every expert that has rows.
template <class F>
void each_expert(const ExpertRows& rows, F f) {
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < rows.experts; ++e) {
    const std::int64_t count = rows.of(e);
    if (count > 0) f(static_cast<std::size_t>(e), first, count);
    first += count;
  }
}

}  // namespace

ExpertMlps::ExpertMlps(const std::string& layer, const ModelShape& s, const Sharding& width, const Sharding& experts,
                       double deviation, const std::vector<std::int64_t>& forced_counts)
    : width_(s.width), gates_(s.gates()), unit_(s.experts.ffn / s.units_of(s.experts.ffn)) {
  const Shard columns = width.shard(0, s.units_of(s.experts.ffn), 1), own = experts.shard(0, s.experts.count, 1);
  columns_ = columns.dim < 0 ? s.experts.ffn : columns.length * unit_;
  const std::int64_t first = own.dim < 0 ? 0 : own.first, count = own.dim < 0 ? s.experts.count : own.length;
  for (std::int64_t e = first; e < first + count; ++e) {
    const std::int64_t forced_rows = forced_counts.empty() ? 0 : forced_counts[static_cast<std::size_t>(e)];
    const double active = forced_counts.empty()
                              ? static_cast<double>(s.experts.chosen) / static_cast<double>(s.experts.count)
                              : static_cast<double>(forced_rows) / static_cast<double>(s.sequence);
    forced_rows_ += forced_rows;
    const auto matrix = [&](const char* which, Shape shape, double deviation_of, int dim, std::int64_t block) {
      auto weight = std::make_shared<Parameter>(Parameter{.name = layer + ".expert." + std::to_string(e) + which,
                                                          .shape = std::move(shape),
                                                          .deviation = deviation_of,
                                                          .active = active});
      width.cut(*weight, dim, block);
      weight->cut_by.insert(weight->cut_by.end(), experts.axes.begin(), experts.axes.end());
      return weight;
    };
    experts_.push_back({matrix(".up.weight", {s.width, gates_ * s.experts.ffn}, 0.02, 1, gates_ * unit_),
                        matrix(".down.weight", {s.experts.ffn, s.width}, deviation, 0, unit_)});
  }
  output_ = {.name = layer + " output", .sum = SumOf::activations, .addends = s.units_of(s.experts.ffn)};
  input_gradient_ = {.name = layer + " input gradient", .sum = SumOf::input_gradients, .addends = s.units_of(s.experts.ffn)};
}

// Computes y = x·w, where each expert multiplies its rows of x by its own matrix.
Tensor ExpertMlps::products(const Tensor& x, ParameterPointer Expert::*matrix, bool transposed, std::int64_t columns,
                            const ExpertRows& here, Context& context) const {
  const Tensor y = context.tensor({x.dim(0), columns});
  each_expert(here, [&](std::size_t e, std::int64_t first, std::int64_t count) {
    context.numerics.product(x.narrow(first, count), (experts_[e].*matrix)->value, transposed, nullptr,
                             y.narrow(first, count), context.queue);
  });
  return y;
}

// Computes y = x·w if each rank has only a part of the summed dimension. Each expert multiplies its own rows by its own
// matrix.
Tensor ExpertMlps::partial_products(const Tensor& x, ParameterPointer Expert::*matrix, bool transposed, std::int64_t block,
                                    const ExpertRows& here, SumSite& site, Context& context) const {
  const Tensor y = context.typed({x.dim(0), width_}, context.numerics.partial_type(context.compute), Category::workspace);
  each_expert(here, [&](std::size_t e, std::int64_t first, std::int64_t count) {
    context.numerics.partial_product(x.narrow(first, count), (experts_[e].*matrix)->value, transposed, block,
                                     y.narrow(first, count), site, context.queue);
  });
  return y;
}

Tensor ExpertMlps::before(const Tensor& rows, const ExpertRows& here, Context& context) const {
  return products(rows, &Expert::up, false, gates_ * columns_, here, context);
}

Tensor ExpertMlps::after(const Tensor& before, Context& context) const {
  const Tensor y = context.tensor({before.dim(0), columns_});
  if (gates_ == 1)
    gelu_forward(before, y, context.queue);
  else
    swiglu_forward(before, unit_, y, context.queue);
  return y;
}

Tensor ExpertMlps::outputs(const Tensor& after, const ExpertRows& here, Context& context) {
  return partial_products(after, &Expert::down, false, unit_, here, output_, context);
}

Tensor ExpertMlps::before_gradient(const Tensor& doutputs, const Tensor& before, const ExpertRows& here,
                                   Context& context) const {
  const Tensor dafter = products(doutputs, &Expert::down, true, columns_, here, context);
  const Tensor dbefore = context.tensor(before.shape());
  if (gates_ == 1)
    gelu_backward(dafter, before, dbefore, context.queue);
  else
    swiglu_backward(dafter, before, unit_, dbefore, context.queue);
  return dbefore;
}

Tensor ExpertMlps::input_gradient(const Tensor& dbefore, const ExpertRows& here, Context& context) {
  return partial_products(dbefore, &Expert::up, true, gates_ * unit_, here, input_gradient_, context);
}

void ExpertMlps::add_weight_gradients(const Tensor& rows, const Tensor& dbefore, const Tensor& after, const Tensor& doutputs,
                                      const ExpertRows& here, Context& context) {
  each_expert(here, [&](std::size_t e, std::int64_t first, std::int64_t count) {
    const std::span leaves(here.counts.data() + static_cast<std::int64_t>(e) * here.leaves,
                           static_cast<std::size_t>(here.leaves));
    const auto add_outer = [&](const Tensor& a, const Tensor& b, Parameter& weight) {
      context.numerics.add_outer_by_leaves(a.narrow(first, count), b.narrow(first, count), leaves, weight.gradient,
                                           weight.site, context.queue);
    };
    add_outer(after, doutputs, *experts_[e].down);
    add_outer(rows, dbefore, *experts_[e].up);
  });
}

void ExpertMlps::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  for (const Expert& expert : experts_) {
    visit(expert.up);
    visit(expert.down);
  }
}

}  // namespace chorale
