#include "experiments/plan/published_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::plan {
namespace {

Errors statistics(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {sum_of(errors) / static_cast<double>(errors.size()), errors[errors.size() / 2], errors.back()};
}

template <class SecondsOf>
Errors errors_of(const std::vector<Compared>& rows, SecondsOf seconds_of) {
  return statistics(each(rows, [&](const Compared& row) { return std::abs(seconds_of(row) / row.measured - 1); }));
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

Errors errors_of(const std::vector<Compared>& rows) {
  return errors_of(rows, [](const Compared& row) { return row.predicted.seconds; });
}

Errors errors_of_constant(const std::vector<Compared>& rows) {
  double p = 0, a = 0;
  for (const Compared& row : rows) {
    const double x = row.predicted.tokens_per_gpu / row.measured;
    p += x;
    a += x * x;
  }
  return errors_of(rows, [&](const Compared& row) { return p / a * row.predicted.tokens_per_gpu; });
}

Errors errors_of_closed_form(const std::vector<Compared>& rows) {
  const std::array<double, 2> c = least_squares(each(rows, [](const Compared& row) {
    return std::array{row.predicted.flops_per_gpu / row.measured, row.predicted.layer_passes / row.measured};
  }));
  return errors_of(
      rows, [&](const Compared& row) { return c[0] * row.predicted.flops_per_gpu + c[1] * row.predicted.layer_passes; });
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
  std::vector<Compared> others;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i != pair.first && i != pair.second) others.push_back(rows[i]);
  pair.errors = errors_of(others, [&](const Compared& row) {
    const Division d = division_of(row.predicted);
    return pair.products * d.products + pair.others * d.others;
  });
  return pair;
}

}  // namespace chorale::plan
