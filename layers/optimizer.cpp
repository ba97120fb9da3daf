#include "layers/optimizer.hpp"

#include "layers/gpt.hpp"
#include "src/math/cast.hpp"

namespace chorale {

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Owned>& all, Allocator& memory, std::uint64_t seed,
                     const Queue& queue, bool masters)
    : rule_(std::move(rule)), seed_(seed) {
  for (const Owned& owned : all) {
    const DType compute = owned.value.dtype(), wide = compute == DType::f64 ? DType::f64 : DType::f32;
    const auto state = [&] { return Tensor(memory, {owned.count}, wide, Category::optimizer); };
    State mine{owned, compute == wide || !masters ? owned.value : state(), {}};
    initialise(*owned.parameter, owned.first, mine.weights.slice(), seed);
    for (std::size_t m = 0; m < rule_->moments().size(); ++m) {
      mine.moments.push_back(state());
      clear(mine.moments.back());
    }
    states_.push_back(std::move(mine));
  }
  publish(queue);
}

void Optimizer::publish(const Queue& queue) {
  for (const State& state : states_)
    if (state.is_master()) cast(state.weights.slice(), state.owned.value.slice(), queue);
}

void Optimizer::step(double rate, double scale, const Numerics& numerics, const Queue& queue) {
  rule_->begin_step(++steps_, rate);
  const Random random{.seed = seed_, .step = static_cast<std::uint32_t>(steps_)};
  std::vector<UpdateRange> ranges;
  for (const State& state : states_) {
    const Parameter& p = *state.owned.parameter;
    UpdateRange& range = ranges.emplace_back(UpdateRange{.weights = state.weights.slice(),
                                                         .gradient = state.owned.gradient.slice(),
                                                         .scale = scale * numerics.unit(p.site),
                                                         .decays = p.decays,
                                                         .random = random,
                                                         .places = places_of(p.shape, p.slab, state.owned.first)});
    range.random.site = p.random_site();
    for (std::size_t m = 0; m < state.moments.size(); ++m) range.moments[m] = state.moments[m].slice();
    if (state.is_master()) range.value = state.owned.value.slice();
  }
  rule_->update(ranges, queue);
}

void Optimizer::each_state(const std::function<void(const std::string&, const Owned&, const Tensor&)>& visit) const {
  const std::vector<std::string> names = rule_->moments();
  for (const State& state : states_) {
    const std::string& name = state.owned.parameter->name;
    visit(name, state.owned, state.weights);
    for (std::size_t m = 0; m < names.size(); ++m) visit(names[m] + "/" + name, state.owned, state.moments[m]);
  }
}

}  // namespace chorale
