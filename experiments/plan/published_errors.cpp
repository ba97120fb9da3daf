#include "experiments/plan/published_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace chorale::plan {
namespace {

Errors statistics(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size()), errors[errors.size() / 2],
          errors.back()};
}

// The constants c ≥ 0 that minimize Σ (c₀·x₀ + c₁·x₁ − 1)², where x is relative to the measured time.
std::array<double, 2> least_squares(const std::vector<std::array<double, 2>>& x) {
  double a = 0, b = 0, d = 0, p = 0, q = 0;
  for (const auto& [x0, x1] : x) {
    a += x0 * x0;
    b += x0 * x1;
    d += x1 * x1;
    p += x0;
    q += x1;
  }
  const double det = a * d - b * b;
  if (std::abs(det) <= 1e-12 * a * d) return {p / a, 0};
  const double c0 = (p * d - b * q) / det, c1 = (a * q - b * p) / det;
  if (c1 < 0) return {p / a, 0};
  if (c0 < 0) return {0, q / d};
  return {c0, c1};
}

// The two parts of a row's time: the time of matrix products, and all other time.
struct Division {
  double products, others;
};
Division division_of(const PredictedRow& row) {
  const double products = (row.seconds_if_slow - row.seconds) / 1e-3;
  return {products, row.seconds - products};
}

}  // namespace

Errors errors_of(const std::vector<double>& predicted, const std::vector<Compared>& rows) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) errors.push_back(std::abs(predicted[i] / rows[i].measured - 1));
  return statistics(errors);
}

Errors errors_of(const std::vector<Compared>& rows) {
  std::vector<double> seconds;
  for (const Compared& row : rows) seconds.push_back(row.predicted.seconds);
  return errors_of(seconds, rows);
}

Errors errors_of_constant(const std::vector<Compared>& rows) {
  double p = 0, a = 0;
  for (const Compared& row : rows) {
    const double x = row.predicted.tokens_per_gpu / row.measured;
    p += x;
    a += x * x;
  }
  std::vector<double> seconds;
  for (const Compared& row : rows) seconds.push_back(p / a * row.predicted.tokens_per_gpu);
  return errors_of(seconds, rows);
}

Errors errors_of_closed_form(const std::vector<Compared>& rows) {
  std::vector<std::array<double, 2>> x;
  for (const Compared& row : rows)
    x.push_back({row.predicted.flops_per_gpu / row.measured, row.predicted.layer_passes / row.measured});
  const auto [c0, c1] = least_squares(x);
  std::vector<double> seconds;
  for (const Compared& row : rows) seconds.push_back(c0 * row.predicted.flops_per_gpu + c1 * row.predicted.layer_passes);
  return errors_of(seconds, rows);
}

std::optional<FittedPair> fitted_to_two(const std::vector<Compared>& rows) {
  if (rows.size() < 3) return std::nullopt;
  const auto share = [&](std::size_t i) { return division_of(rows[i].predicted).products / rows[i].predicted.seconds; };
  FittedPair pair{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (share(i) < share(pair.first)) pair.first = i;
    if (share(i) > share(pair.second)) pair.second = i;
  }
  const Division a = division_of(rows[pair.first].predicted), b = division_of(rows[pair.second].predicted);
  const double det = a.products * b.others - b.products * a.others;
  pair.products = (rows[pair.first].measured * b.others - rows[pair.second].measured * a.others) / det;
  pair.others = (a.products * rows[pair.second].measured - b.products * rows[pair.first].measured) / det;
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == pair.first || i == pair.second) continue;
    const Division d = division_of(rows[i].predicted);
    errors.push_back(std::abs((pair.products * d.products + pair.others * d.others) / rows[i].measured - 1));
  }
  pair.errors = statistics(errors);
  return pair;
}

}  // namespace chorale::plan
