#include "collectives/prediction/prices.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/error.hpp"

namespace chorale::prediction {
namespace {

bool is_rate(const PriceKey& key) { return std::string_view(key.unit) == "B/s"; }

}  // namespace

double at(const Curve& curve, double footprint) {
  if (footprint <= footprints.front()) return curve.front();
  if (footprint >= footprints.back()) return curve.back();
  const auto right = static_cast<std::size_t>(std::ranges::upper_bound(footprints, footprint) - footprints.begin());
  if (curve[right - 1] <= 0 || curve[right] <= 0) return 0;
  const double share = std::log(footprint / footprints[right - 1]) / std::log(footprints[right] / footprints[right - 1]);
  return curve[right - 1] * std::pow(curve[right] / curve[right - 1], share);
}

std::span<double> values(Prices& prices, const std::string& key) {
  const std::pair<const char*, std::span<double>> all[] = {
      {"call", {&prices.call, 1}},
      {"step", {&prices.step, 1}},
      {"message", {&prices.message, 1}},
      {"latency", {&prices.latency, 1}},
      {"handshake", {&prices.handshake, 1}},
      {"turn", {&prices.turn, 1}},
      {"touch", prices.touch},
      {"cross", prices.cross},
      {"cross_sum", {&prices.cross_sum, 1}},
      {"sum", {&prices.sum, 1}},
      {"copy", {&prices.copy, 1}},
      {"eager", {&prices.eager, 1}},
      {"eager_bytes", {&prices.eager_bytes, 1}},
      {"link", {&prices.link, 1}},
      {"burst", {&prices.burst, 1}},
  };
  const auto found = std::ranges::find_if(all, [&](const auto& row) { return row.first == key; });
  require(found != std::end(all), "no price is called {}", key);
  return found->second;
}

Prices prices_of(const Level& level) {
  Prices prices;
  for (const PriceKey& key : price_keys())
    if (const auto found = level.prices.find(key.name); found != level.prices.end())
      for (std::size_t i = 0; i < key.count; ++i)
        values(prices, key.name)[i] = is_rate(key) ? 1 / found->second[i] : found->second[i];
  return prices;
}

void set_prices(Level& level, const Prices& prices) {
  Prices copy = prices;
  for (const PriceKey& key : price_keys()) {
    const std::span<double> own = values(copy, key.name);
    if (std::ranges::any_of(own, [](double value) { return value <= 0; })) continue;
    auto& kept = level.prices[key.name] = {own.begin(), own.end()};
    for (double& value : kept)
      if (is_rate(key)) value = 1 / value;
  }
}

}  // namespace chorale::prediction
