#include "collectives/prediction/least_squares.hpp"

#include <algorithm>
#include <cmath>

namespace chorale::prediction {
namespace {

constexpr double large = 0.3;   // the cost of a larger error is linear, not quadratic
constexpr double pull = 0.02;   // weight of the pull toward the start values
constexpr double nudge = 0.02;  // step of the numerical derivative
constexpr int most_steps = 40, most_tries = 6;

double weight(double error) { return std::abs(error) < large ? 1 : large / std::abs(error); }

// Solves a positive definite system by Gauss-Jordan elimination.
Row eliminate(std::vector<Row>& a) {
  Row x;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j) {
      if (j == i) continue;
      const double factor = a[j][i] / a[i][i];
      for (std::size_t k = i; k <= a.size(); ++k) a[j][k] -= factor * a[i][k];
    }
  for (std::size_t i = 0; i < a.size(); ++i) x.push_back(a[i].back() / a[i][i]);
  return x;
}

class Descent {
 public:
  Descent(const Row& start, const std::function<Row(const Row&)>& errors_at, const std::function<bool()>& tick)
      : start_(start), errors_at_(errors_at), tick_(tick), x_(start), errors_(errors_at(start)) {}

  std::optional<Minimum> run() {
    double now = cost(errors_, x_), damping = 1e-2;
    for (int step = 0; step < most_steps; ++step) {
      if (!derive()) return std::nullopt;
      const double before = now;
      for (int tries = 0; tries < most_tries && now == before; ++tries) {
        Row tried = x_;
        const Row move = solve(damping);
        for (std::size_t i = 0; i < tried.size(); ++i) tried[i] += std::clamp(move[i], -1.0, 1.0);
        Row tried_errors = errors_at_(tried);
        if (const double then = cost(tried_errors, tried); then < now) {
          x_ = std::move(tried);
          errors_ = std::move(tried_errors);
          now = then;
          damping /= 3;
        } else
          damping *= 4;
      }
      if (before - now < 1e-4 * before) break;
    }
    return Minimum{x_, errors_, standard_errors(), now};
  }

 private:
  double cost(const Row& errors, const Row& x) const {
    double sum = 0;
    for (const double e : errors) sum += std::abs(e) < large ? e * e / 2 : large * (std::abs(e) - large / 2);
    for (std::size_t i = 0; i < x.size(); ++i) sum += pull * (x[i] - start_[i]) * (x[i] - start_[i]) / 2;
    return sum;
  }

  bool derive() {
    slopes_.assign(x_.size(), {});
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (!tick_()) return false;
      Row x = x_;
      x[i] += nudge;
      slopes_[i] = errors_at_(x);
      for (std::size_t k = 0; k < errors_.size(); ++k) slopes_[i][k] = (slopes_[i][k] - errors_[k]) / nudge;
    }
    return true;
  }

  // The matrix of the normal equations, with a last column of zeros.
  std::vector<Row> normal() const {
    std::vector<Row> a(x_.size(), Row(x_.size() + 1, 0));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < a.size(); ++j)
        for (std::size_t k = 0; k < errors_.size(); ++k) a[i][j] += weight(errors_[k]) * slopes_[i][k] * slopes_[j][k];
      a[i][i] += pull;
    }
    return a;
  }

  Row solve(double damping) const {
    std::vector<Row> a = normal();
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < errors_.size(); ++k) a[i].back() -= weight(errors_[k]) * slopes_[i][k] * errors_[k];
      a[i].back() -= pull * (x_[i] - start_[i]);
      a[i][i] *= 1 + damping;
    }
    return eliminate(a);
  }

  // Derives the standard errors from the curvature and from the size of the errors at the minimum.
  Row standard_errors() const {
    const double sigma = 1.48 * quantile_of_sizes(errors_, 50);
    Row result;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      std::vector<Row> a = normal();
      a[i].back() = 1;
      result.push_back(sigma * std::sqrt(std::max(0.0, eliminate(a)[i])));
    }
    return result;
  }

  const Row& start_;
  const std::function<Row(const Row&)>& errors_at_;
  const std::function<bool()>& tick_;
  Row x_, errors_;
  std::vector<Row> slopes_;  // slopes_[parameter][error]: derivative of the error
};

}  // namespace

std::optional<Minimum> minimize(const Row& start, const std::function<Row(const Row&)>& errors_at,
                                const std::function<bool()>& tick) {
  return Descent(start, errors_at, tick).run();
}

double quantile_of_sizes(const Row& errors, int percent) {
  Row sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::ranges::sort(sizes);
  return sizes.empty() ? 0 : sizes[sizes.size() * static_cast<std::size_t>(percent) / 100];
}

}  // namespace chorale::prediction
