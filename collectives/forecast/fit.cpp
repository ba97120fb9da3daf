#include "collectives/forecast/fit.hpp"

#include <algorithm>
#include <cmath>

namespace chorale::forecast {
namespace {

using Row = std::vector<double>;
constexpr double large = 0.3;   // errors above this count linearly, not squared
constexpr double pull = 0.02;   // towards the prices that the fit begins with
constexpr double nudge = 0.02;  // step of the numerical derivative
constexpr int most_steps = 40, most_tries = 6;

// Where every search begins: a typical core and a gigabit network.
Prices usual(bool is_network) {
  Prices p{.call = 3e-7, .step = 5e-8, .message = 3e-7, .latency = 1e-7, .handshake = 1e-6, .turn = 1e-6};
  p.touch.fill(1 / 40e9);
  p.cross.fill(1 / 30e9);
  p.sum = 1 / 100e9, p.copy = 1 / 15e9, p.eager = 1 / 10e9;
  if (is_network) p.latency = 3e-5, p.message = 5e-6, p.handshake = 3e-5, p.link = 1 / 120e6, p.copy = 1 / 3e9;
  return p;
}

struct Knob {
  std::string key;
  std::size_t place;  // among the key's values
  bool is_between;
};

class Search {
 public:
  Search(const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site, double eager_bytes,
         const std::function<bool()>& tick)
      : rows_(rows), element_bytes_(element_bytes), maps_memory_(maps_memory), site_(site), tick_(tick) {
    const bool is_network = std::ranges::max(site.host_of) > 0;
    within_ = usual(false), between_ = usual(is_network);
    within_.eager_bytes = between_.eager_bytes = eager_bytes;
    std::vector<const char*> common{"call", "step", "touch", "cross", "sum"};
    if (site.crowded()) common.push_back("turn");
    std::vector<const char*> message{"latency", "copy"};
    if (!maps_memory) message.insert(message.end(), {"message", "eager", "handshake"});
    add(common, is_network), add(message, false);
    if (is_network) add(message, true), add({"link"}, true);
    for (const Knob& knob : knobs_) x_.push_back(std::log(value(knob)));
    start_ = x_;
  }

  // False if it was stopped.
  bool run() {
    Row errors = errors_at(x_);
    cost_ = cost(errors, x_);
    double damping = 1e-2;
    for (int step = 0; step < most_steps; ++step) {
      if (!derive(errors)) return false;
      const double before = cost_;
      for (int tries = 0; tries < most_tries && cost_ == before; ++tries) {
        Row tried = x_;
        const Row move = solve(errors, damping);
        for (std::size_t i = 0; i < tried.size(); ++i) tried[i] += std::clamp(move[i], -1.0, 1.0);
        const Row tried_errors = errors_at(tried);
        if (const double now = cost(tried_errors, tried); now < cost_)
          x_ = tried, errors = tried_errors, cost_ = now, damping /= 3;
        else
          damping *= 4;
      }
      if (before - cost_ < 1e-4 * before) break;
    }
    errors_ = errors_at(x_);
    return true;
  }
  double cost() const { return cost_; }

  Fitted result() {
    Fitted fitted;
    const Row spread = standard_errors();
    for (std::size_t i = 0; i < knobs_.size(); ++i)
      (knobs_[i].is_between ? fitted.spread_between : fitted.spread)[knobs_[i].key].push_back(spread[i]);
    fitted.within = within_, fitted.between = between_;
    if (maps_memory_) fitted.within.message = fitted.within.handshake = fitted.within.eager = fitted.within.eager_bytes = 0;
    for (Prices* prices : {&fitted.within, &fitted.between}) {
      if (!site_.crowded()) prices->turn = 0;
      if (std::ranges::max(site_.host_of) == 0) prices->link = 0;
    }
    Row sizes;
    for (const double error : errors_) sizes.push_back(std::abs(error));
    std::ranges::sort(sizes);
    if (!sizes.empty()) fitted.error = sizes[sizes.size() / 2], fitted.error_95 = sizes[sizes.size() * 95 / 100];
    return fitted;
  }

 private:
  void add(const std::vector<const char*>& keys, bool is_between) {
    for (const char* key : keys)
      for (std::size_t i = 0; i < values(within_, key).size(); ++i) knobs_.push_back({key, i, is_between});
  }
  double& value(const Knob& knob) { return values(knob.is_between ? between_ : within_, knob.key)[knob.place]; }

  Row errors_at(const Row& x) {
    for (std::size_t i = 0; i < knobs_.size(); ++i) value(knobs_[i]) = std::exp(x[i]);
    Row errors;
    for (const Timed& row : rows_) {
      const double seconds = maps_memory_ ? mapped(row.ranks, element_bytes_, site_, within_)
                                          : messages(row.ranks, element_bytes_, site_, within_, between_);
      errors.push_back(std::log(seconds / row.seconds));
    }
    return errors;
  }

  double cost(const Row& errors, const Row& x) const {
    double sum = 0;
    for (const double e : errors) sum += std::abs(e) < large ? e * e / 2 : large * (std::abs(e) - large / 2);
    for (std::size_t i = 0; i < x.size(); ++i) sum += pull * (x[i] - start_[i]) * (x[i] - start_[i]) / 2;
    return sum;
  }

  static double weight(double error) { return std::abs(error) < large ? 1 : large / std::abs(error); }

  bool derive(const Row& errors) {
    slopes_.assign(knobs_.size(), {});
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      if (!tick_()) return false;
      Row x = x_;
      x[i] += nudge;
      slopes_[i] = errors_at(x);
      for (std::size_t k = 0; k < errors.size(); ++k) slopes_[i][k] = (slopes_[i][k] - errors[k]) / nudge;
    }
    return true;
  }

  // The matrix of the normal equations, with a last column of zeros.
  std::vector<Row> normal(const Row& errors) const {
    std::vector<Row> a(knobs_.size(), Row(knobs_.size() + 1, 0));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < a.size(); ++j)
        for (std::size_t k = 0; k < errors.size(); ++k) a[i][j] += weight(errors[k]) * slopes_[i][k] * slopes_[j][k];
      a[i][i] += pull;
    }
    return a;
  }

  Row solve(const Row& errors, double damping) const {
    std::vector<Row> a = normal(errors);
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < errors.size(); ++k) a[i].back() -= weight(errors[k]) * slopes_[i][k] * errors[k];
      a[i].back() -= pull * (x_[i] - start_[i]);
      a[i][i] *= 1 + damping;
    }
    return eliminate(a);
  }

  // Gauss and Jordan's elimination of a positive definite system.
  static Row eliminate(std::vector<Row>& a) {
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

  // By the curvature at the minimum and the size of the errors there.
  Row standard_errors() const {
    Row sizes;
    for (const double error : errors_) sizes.push_back(std::abs(error));
    std::ranges::sort(sizes);
    const double sigma = sizes.empty() ? 0 : 1.48 * sizes[sizes.size() / 2];
    Row result;
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      std::vector<Row> a = normal(errors_);
      a[i].back() = 1;
      result.push_back(sigma * std::sqrt(std::max(0.0, eliminate(a)[i])));
    }
    return result;
  }

  const std::vector<Timed>& rows_;
  std::int64_t element_bytes_;
  bool maps_memory_;
  Site site_;
  const std::function<bool()>& tick_;
  Prices within_, between_;
  std::vector<Knob> knobs_;
  Row x_, start_, errors_;
  std::vector<Row> slopes_;  // by knob and row
  double cost_ = 0;
};

}  // namespace

std::optional<Fitted> fit(const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site,
                          const std::function<bool()>& tick) {
  std::optional<Search> best;
  for (const double eager_bytes : {1 << 10, 4 << 10, 8 << 10, 32 << 10, 64 << 10}) {
    Search search(rows, element_bytes, maps_memory, site, eager_bytes, tick);
    if (!search.run()) return std::nullopt;
    if (!best || search.cost() < best->cost()) best.emplace(std::move(search));
    if (maps_memory) break;
  }
  return best->result();
}

}  // namespace chorale::forecast
