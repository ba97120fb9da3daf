// Checks the gradients of a small model in f64 against central differences of its loss.
#pragma once
#include "tests/catch.hpp"
#include "tests/layers/small_model.hpp"

namespace chorale {

// Returns d loss(p + t·direction) / dt at t = 0, by central differences.
inline double slope(SmallModel& m, const ParameterPointer& p, const std::vector<double>& direction) {
  const auto values = p->value.values<double>();
  const std::vector<double> here(values.begin(), values.end());
  const auto at = [&](double t) {
    for (std::size_t i = 0; i < here.size(); ++i) values[i] = here[i] + t * direction[i];
    return m.forward();
  };
  constexpr double step = 1e-5;
  const double above = at(step), below = at(-step);
  std::copy(here.begin(), here.end(), values.begin());
  return (above - below) / (2 * step);
}

// For each parameter, checks the slope of the loss along one direction: the normalized gradient plus a small random vector.
// Skips parameters with names that end with `except`.
inline void check_gradients(SmallModel& m, const std::string& except = "none") {
  m.forward_backward();
  double whole = 0;
  std::vector<std::vector<double>> gradients;
  for (const ParameterPointer& p : m.model.parameters()) {
    gradients.push_back(m.gradient(p));
    whole = std::hypot(whole, norm(gradients.back()));
  }
  std::uint32_t site = 0;
  for (const ParameterPointer& p : m.model.parameters()) {
    if (p->name.ends_with(except)) {
      ++site;
      continue;
    }
    const std::vector<double>& gradient = gradients[site];
    std::vector<double> direction(gradient.size());
    const double length = norm(gradient);
    for (std::size_t i = 0; i < direction.size(); ++i)
      direction[i] = (length > 0 ? gradient[i] / length : 0) + 0.1 * (Random{.seed = 1, .site = site}.uniform(i) - 0.5);
    double expected = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) expected += direction[i] * gradient[i];
    INFO(p->name << ": " << expected);
    CHECK(std::abs(slope(m, p, direction) - expected) <= 1e-6 * std::max(std::abs(expected), 1e-3 * whole));
    ++site;
  }
}

inline void check_gradients(const ModelShape& shape, std::int64_t samples) {
  SmallModel m(shape, DType::f64, samples);
  check_gradients(m);
}

}  // namespace chorale
