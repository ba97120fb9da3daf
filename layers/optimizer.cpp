#include "layers/optimizer.hpp"

#include "layers/gpt.hpp"
#include "src/math/cast.hpp"

namespace chorale {
namespace {

DType wide_type(const Owned& owned) { return owned.value.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Owned>& all, Allocator& memory, std::uint64_t seed,
                     const Queue& queue, bool masters, const OptimizerTier& tier)
    : rule_(std::move(rule)), memory_(tier.compute ? *tier.compute : memory), tier_(tier), seed_(seed) {
  Allocator& home = tier.states ? *tier.states : memory;
  for (const Owned& owned : all) {
    const bool has_master = tier.delays || (masters && owned.value.dtype() != wide_type(owned));
    const auto state = [&](std::int64_t count) {
      const Tensor made(home, {count}, wide_type(owned), Category::optimizer);
      clear(made);
      return made;
    };
    State mine{owned, owned.value, {}};
    if (tier.traffic) {
      const Flat& flat = flat_of(owned, has_master, state);
      if (has_master) mine.weights = flat.weights.narrow(owned.at, owned.count);
    } else {
      if (has_master) mine.weights = state(owned.count);
      for (std::size_t m = 0; m < rule_->moments().size(); ++m) mine.moments.push_back(state(owned.count));
    }
    const std::int64_t at_once =
        is_away(mine.weights, memory.device()) ? tier.elements : std::max<std::int64_t>(owned.count, 1);
    for (std::int64_t first = 0; first < owned.count; first += at_once)
      initialize(*owned.parameter, owned.first + first,
                 mine.weights.slice().narrow(first, std::min(at_once, owned.count - first)), seed, queue.threads);
    states_.push_back(std::move(mine));
  }
  publish(queue);
}

// Returns the flat tensors that contain a state. Creates new flat tensors if the state is the first of its bucket.
Optimizer::Flat& Optimizer::flat_of(const Owned& owned, bool has_master, const std::function<Tensor(std::int64_t)>& state) {
  if (flat_.empty() || flat_.back().bucket != owned.bucket) {
    Flat& flat =
        flat_.emplace_back(Flat{owned.bucket, states_.size(), states_.size(), owned.all_values, owned.all_gradients});
    const std::int64_t count = owned.all_values.count();
    const std::size_t moments = rule_->moments().size();
    if (has_master) flat.weights = state(count);
    for (std::size_t m = 0; m < moments; ++m) flat.moments.push_back(state(count));
    if (tier_.keeps_old && has_master) flat.other_weights = state(count);
    if (tier_.keeps_old && !has_master)
      flat.old_values = Tensor(tier_.states ? *tier_.states : memory_, {count}, owned.value.dtype(), Category::optimizer);
    for (std::size_t m = 0; tier_.keeps_old && m < moments; ++m) flat.other_moments.push_back(state(count));
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
  std::vector<WindowParts> items;
  for (const Flat& flat : flat_) items.push_back({{flat.weights}, {flat.values, Category::params, false, true}});
  through_windows(items, tier_.elements, memory_, *tier_.traffic,
                  [&](const Window&, std::span<const Tensor> here) { cast(here[0].slice(), here[1].slice(), queue); });
}

void Optimizer::step(double rate, double scale, const Numerics& numerics, const Queue& queue) {
  if (!flat_.empty()) {
    begin(rate, scale, numerics, queue);
    return finish();
  }
  rule_->begin_step(++steps_, rate);
  std::vector<UpdateRange> ranges;
  for (const State& state : states_) {
    const Owned& owned = state.owned;
    std::vector<Tensor> here{owned.gradient, owned.value, state.is_master() ? state.weights : Tensor()};
    here.insert(here.end(), state.moments.begin(), state.moments.end());
    ranges.push_back(range_of({state, 0, owned.count, 0}, here, scale, numerics));
  }
  rule_->update(ranges, queue);
}

void Optimizer::begin(double rate, double scale, const Numerics& numerics, const Queue& queue) {
  rule_->begin_step(++steps_, rate);
  meter_ = queue.meter;
  if (flat_.empty()) return;
  std::int64_t longest = 1;
  for (const Flat& flat : flat_) longest = std::max(longest, flat.gradients.count());
  walk_.emplace(parts_of(flat_.front()), std::min(tier_.elements, longest), memory_, *tier_.traffic,
                [this, scale, &numerics, queue](const Window& window, std::span<const Tensor> here) {
                  update_window(window, here, scale, numerics, queue);
                });
}

void Optimizer::start_flat(std::size_t flat) {
  if (std::exchange(flat_[flat].started, true)) return;
  walk_->add(flat, parts_of(flat_[flat]));
}

void Optimizer::without_waits(std::size_t flat, const std::function<void()>& act) {
  if (meter_) meter_->begins_update(flat_[flat].bucket);
  act();
  if (meter_) meter_->leaves_update();
}

void Optimizer::start(std::size_t bucket) {
  for (std::size_t flat = 0; flat < flat_.size(); ++flat)
    if (flat_[flat].bucket == bucket) without_waits(flat, [&] { start_flat(flat); });
}

void Optimizer::start() {
  for (std::size_t flat = 0; flat < flat_.size(); ++flat) without_waits(flat, [&] { start_flat(flat); });
}

void Optimizer::progress() {
  if (walk_) walk_->progress();
}

void Optimizer::finish(std::size_t bucket) {
  for (std::size_t flat = 0; walk_ && flat < flat_.size(); ++flat)
    if (flat_[flat].bucket == bucket) without_waits(flat, [&] { walk_->finish(flat); });
  if (walk_ && meter_) meter_->waits_for_update(bucket);
}

void Optimizer::finish() {
  if (!walk_) return;
  if (std::ranges::any_of(flat_, &Flat::started)) {
    start();
    without_waits(0, [&] { walk_->finish(); });
    for (const Flat& flat : flat_)
      if (meter_) meter_->waits_for_update(flat.bucket);
  } else {
    for (std::size_t flat = 0; flat < flat_.size(); ++flat) start_flat(flat);
    walk_->finish();
  }
  walk_.reset();
  for (Flat& flat : flat_) {
    flat.started = false;
    if (tier_.keeps_old) flat.exchange();
  }
}

void Optimizer::roll_back(const Queue& queue) {
  --steps_;
  if (flat_.empty()) return;
  std::vector<WindowParts> items;
  for (Flat& flat : flat_) {
    flat.exchange();
    if (flat.old_values) items.push_back({{flat.old_values}, {flat.values, Category::params, false, true}});
  }
  if (items.empty()) return publish(queue);
  through_windows(items, tier_.elements, memory_, *tier_.traffic,
                  [](const Window&, std::span<const Tensor> here) { copy(here[0].slice(), here[1].slice()); });
}

// The update reads values only if there are no separate master weights. Otherwise the new weights overwrite all values.
// Delayed updates do not access the values.
WindowParts Optimizer::parts_of(const Flat& flat) const {
  WindowParts parts{{flat.gradients, Category::grads},
                    {tier_.delays ? Tensor() : flat.values, Category::params, !flat.weights, true},
                    {flat.weights, Category::optimizer, true, true, flat.other_weights}};
  for (std::size_t m = 0; m < flat.moments.size(); ++m)
    parts.push_back({flat.moments[m], Category::optimizer, true, true, tier_.keeps_old ? flat.other_moments[m] : Tensor()});
  if (flat.old_values) parts.push_back({flat.old_values, Category::optimizer, false, true});
  return parts;
}

std::vector<Optimizer::Piece> Optimizer::pieces_in(const Window& window) const {
  std::vector<Piece> pieces;
  const Flat& flat = flat_[window.item];
  for (const State& state : std::span(states_).subspan(flat.first, flat.last - flat.first)) {
    const Owned& owned = state.owned;
    const std::int64_t first = std::max(window.first, owned.at);
    const std::int64_t count = std::min(window.first + window.count, owned.at + owned.count) - first;
    if (count > 0) pieces.push_back({state, first - owned.at, count, first - window.first});
  }
  return pieces;
}

void Optimizer::update_window(const Window& window, std::span<const Tensor> here, double scale, const Numerics& numerics,
                              const Queue& queue) const {
  if (flat_[window.item].old_values) {
    copy(here[1].slice(), here.back().slice());
    here = here.first(here.size() - 1);
  }
  std::vector<UpdateRange> ranges;
  for (const Piece& piece : pieces_in(window)) ranges.push_back(range_of(piece, here, scale, numerics));
  rule_->update(ranges, queue);
}

UpdateRange Optimizer::range_of(const Piece& piece, std::span<const Tensor> here, double scale,
                                const Numerics& numerics) const {
  const Owned& owned = piece.state.owned;
  const Parameter& p = *owned.parameter;
  const auto slice = [&](const Tensor& t) { return t.slice().narrow(piece.at, piece.count); };
  const Tensor &gradients = here[0], &values = here[1], &masters = here[2];
  UpdateRange range{.weights = slice(masters ? masters : values),
                    .gradient = slice(gradients),
                    .scale = scale * numerics.unit(p.site),
                    .decays = p.decays,
                    .random = {.seed = seed_, .step = static_cast<std::uint32_t>(steps_), .site = p.random_site()},
                    .places = places_of(p.shape, p.shard, owned.first + piece.first)};
  for (std::size_t m = 3; m < here.size(); ++m) range.moments[m - 3] = slice(here[m]);
  if (masters && values) range.value = slice(values);
  return range;
}

void Optimizer::each_state(const std::function<void(const std::string&, const Owned&, const Tensor&)>& visit) const {
  const std::vector<std::string> names = rule_->moments();
  const auto visit_all = [&](const State& state, const Tensor& weights, std::span<const Tensor> moments) {
    const std::string& name = state.owned.parameter->name;
    visit(name, state.owned, weights);
    for (std::size_t m = 0; m < names.size(); ++m) visit(names[m] + "/" + name, state.owned, moments[m]);
    if (tier_.delays) visit("value/" + name, state.owned, state.owned.value);
  };
  if (flat_.empty())
    for (const State& state : states_) visit_all(state, state.weights, state.moments);
  for (const Flat& flat : flat_)
    for (const State& state : std::span(states_).subspan(flat.first, flat.last - flat.first)) {
      std::vector<Tensor> parts{flat.weights ? flat.weights : flat.values};
      parts.insert(parts.end(), flat.moments.begin(), flat.moments.end());
      for (Tensor& part : parts) part = part.narrow(state.owned.at, state.owned.count);
      visit_all(state, parts[0], std::span(parts).subspan(1));
    }
}

}  // namespace chorale
