#include "layers/optimizer.hpp"

#include "layers/gpt.hpp"
#include "src/math/cast.hpp"

namespace chorale {
namespace {

DType wide_type(const Owned& owned) { return owned.value.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Owned>& all, Allocator& memory, std::uint64_t seed,
                     const Queue& queue, bool masters, const OptimizerTier& tier)
    : rule_(std::move(rule)), memory_(memory), tier_(tier), seed_(seed) {
  Allocator& home = tier.states ? *tier.states : memory;
  for (const Owned& owned : all) {
    const bool has_master = masters && owned.value.dtype() != wide_type(owned);
    const auto state = [&](std::int64_t count) {
      const Tensor made(home, {count}, wide_type(owned), Category::optimizer);
      clear(made);
      return made;
    };
    State mine{owned, owned.value, {}};
    if (tier.traffic) {
      Flat& flat = flat_of(owned, has_master, state);
      if (has_master) mine.weights = flat.weights.narrow(owned.at, owned.count);
      for (const Tensor& moment : flat.moments) mine.moments.push_back(moment.narrow(owned.at, owned.count));
    } else {
      if (has_master) mine.weights = state(owned.count);
      for (std::size_t m = 0; m < rule_->moments().size(); ++m) mine.moments.push_back(state(owned.count));
    }
    const std::int64_t at_once = is_away(mine.weights) ? tier.elements : std::max<std::int64_t>(owned.count, 1);
    for (std::int64_t first = 0; first < owned.count; first += at_once)
      initialise(*owned.parameter, owned.first + first,
                 mine.weights.slice().narrow(first, std::min(at_once, owned.count - first)), seed);
    states_.push_back(std::move(mine));
  }
  publish(queue);
}

// The flat tensors to which a state belongs; new ones if it begins a bucket.
Optimizer::Flat& Optimizer::flat_of(const Owned& owned, bool has_master, const std::function<Tensor(std::int64_t)>& state) {
  if (flat_.empty() || flat_.back().values.storage() != owned.all_values.storage()) {
    Flat& flat = flat_.emplace_back(Flat{states_.size(), states_.size(), owned.all_values, owned.all_gradients});
    if (has_master) flat.weights = state(owned.all_values.count());
    for (std::size_t m = 0; m < rule_->moments().size(); ++m) flat.moments.push_back(state(owned.all_values.count()));
  }
  ++flat_.back().last;
  return flat_.back();
}

void Optimizer::publish(const Queue& queue) {
  if (flat_.empty()) {
    for (const State& state : states_)
      if (state.is_master()) cast(state.weights.slice(), state.owned.value.slice(), queue);
    return;
  }
  if (!flat_.front().weights) return;
  in_windows(
      [](const Flat& flat) {
        return WindowParts{values_part(flat, false), {flat.weights}};
      },
      [&](std::span<const Piece>, std::span<const Tensor> here) { cast(here[1].slice(), here[0].slice(), queue); });
}

void Optimizer::step(double rate, double scale, const Numerics& numerics, const Queue& queue) {
  rule_->begin_step(++steps_, rate);
  if (!flat_.empty()) return step_in_windows(scale, numerics, queue);
  std::vector<UpdateRange> ranges;
  for (const State& state : states_) {
    const Owned& owned = state.owned;
    std::vector<Tensor> here{owned.value, owned.gradient, state.is_master() ? state.weights : Tensor()};
    here.insert(here.end(), state.moments.begin(), state.moments.end());
    ranges.push_back(range_of({state, 0, owned.count, 0}, here, scale, numerics));
  }
  rule_->update(ranges, queue);
}

void Optimizer::step_in_windows(double scale, const Numerics& numerics, const Queue& queue) {
  const auto parts_of = [](const Flat& flat) {
    WindowParts parts{values_part(flat, true), {flat.gradients, Category::grads}, {flat.weights}};
    for (const Tensor& moment : flat.moments) parts.push_back({moment});
    for (std::size_t i = 2; i < parts.size(); ++i) parts[i].writes = true;
    return parts;
  };
  in_windows(parts_of, [&](std::span<const Piece> pieces, std::span<const Tensor> here) {
    std::vector<UpdateRange> ranges;
    for (const Piece& piece : pieces) ranges.push_back(range_of(piece, here, scale, numerics));
    rule_->update(ranges, queue);
  });
}

// Values are read only if they are the weights: otherwise the weights overwrite all of them.
WindowPart Optimizer::values_part(const Flat& flat, bool updates) {
  return {flat.values, Category::params, updates && !flat.weights, true};
}

void Optimizer::in_windows(const std::function<WindowParts(const Flat&)>& parts_of,
                           const std::function<void(std::span<const Piece>, std::span<const Tensor>)>& visit) const {
  std::vector<WindowParts> items;
  for (const Flat& flat : flat_) items.push_back(parts_of(flat));
  through_windows(items, tier_.elements, memory_, *tier_.traffic, [&](const Window& window, std::span<const Tensor> here) {
    std::vector<Piece> pieces;
    const Flat& flat = flat_[window.item];
    for (const State& state : std::span(states_).subspan(flat.first, flat.last - flat.first)) {
      const Owned& owned = state.owned;
      const std::int64_t first = std::max(window.first, owned.at);
      const std::int64_t count = std::min(window.first + window.count, owned.at + owned.count) - first;
      if (count > 0) pieces.push_back({state, first - owned.at, count, first - window.first});
    }
    visit(pieces, here);
  });
}

UpdateRange Optimizer::range_of(const Piece& piece, std::span<const Tensor> here, double scale,
                                const Numerics& numerics) const {
  const Owned& owned = piece.state.owned;
  const Parameter& p = *owned.parameter;
  const auto slice = [&](const Tensor& t) { return t.slice().narrow(piece.at, piece.count); };
  const bool has_master = bool(here[2]);
  UpdateRange range{.weights = slice(here[has_master ? 2 : 0]),
                    .gradient = slice(here[1]),
                    .scale = scale * numerics.unit(p.site),
                    .decays = p.decays,
                    .random = {.seed = seed_, .step = static_cast<std::uint32_t>(steps_), .site = p.random_site()},
                    .places = places_of(p.shape, p.slab, owned.first + piece.first)};
  for (std::size_t m = 3; m < here.size(); ++m) range.moments[m - 3] = slice(here[m]);
  if (has_master) range.value = slice(here[0]);
  return range;
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
