#include "layers/optimizer.hpp"

#include <cstring>

#include "layers/gpt.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, std::vector<ParameterPointer> parameters, Allocator& memory,
                     std::uint64_t seed)
    : rule_(std::move(rule)) {
  for (ParameterPointer& p : parameters) {
    const DType compute = p->value.dtype(), wide = compute == DType::f64 ? DType::f64 : DType::f32;
    State state{p, compute == wide ? p->value : Tensor(memory, p->local_shape(), wide, Category::optimizer), {}};
    initialise(*p, state.weights.slice(), seed);
    for (std::size_t m = 0; m < rule_->moments().size(); ++m) {
      state.moments.emplace_back(memory, p->local_shape(), wide, Category::optimizer);
      const Slice moment = state.moments.back().slice();
      if (moment.data) std::memset(moment.data, 0, static_cast<std::size_t>(moment.bytes()));
    }
    states_.push_back(std::move(state));
  }
  publish({});
}

void Optimizer::publish(const Queue& queue) {
  for (const State& state : states_)
    if (state.weights.storage() != state.parameter->value.storage())
      cast(state.weights.slice(), state.parameter->value.slice(), queue);
}

void Optimizer::step(double rate, double scale, const Numerics& numerics, const Queue& queue) {
  rule_->begin_step(++steps_, rate);
  std::vector<Slice> moments;
  for (const State& state : states_) {
    moments.clear();
    for (const Tensor& moment : state.moments) moments.push_back(moment.slice());
    const Parameter& p = *state.parameter;
    rule_->update(state.weights.slice(), moments, p.gradient.slice(), scale * numerics.unit(p.site), p.decays, queue);
  }
  publish(queue);
}

void Optimizer::each_state(const std::function<void(const std::string&, const Parameter&, const Tensor&)>& visit) const {
  const std::vector<std::string> names = rule_->moments();
  for (const State& state : states_) {
    visit(state.parameter->name, *state.parameter, state.weights);
    for (std::size_t m = 0; m < names.size(); ++m)
      visit(names[m] + "/" + state.parameter->name, *state.parameter, state.moments[m]);
  }
}

}  // namespace chorale
