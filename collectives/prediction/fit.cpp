#include "collectives/prediction/fit.hpp"

#include <algorithm>
#include <cmath>

#include "collectives/prediction/least_squares.hpp"

namespace chorale::prediction {
namespace {

// Candidates for the length of the longest eager message. Each candidate is halfway between two powers of two, because most
// programs send messages whose lengths are powers of two. The limit of MPI or UCX can be slightly above or below a power of
// two, because an eager message shares a buffer with its header. Within a host, Open MPI's buffers have 4096 bytes, and
// UCX's buffers have 8256 bytes.
constexpr double usual_eager_bytes[] = {1536, 3072, 6144, 12288, 24576, 49152, 98304, 3145728};

// A link is modeled with a burst only if the burst reduces the cost of the fit by at least this factor.
constexpr double worth_a_burst = 1.05;

// Returns the start values of every search: the prices of a typical core and a gigabit network.
Prices usual(bool is_network) {
  Prices p{.call = 3e-7, .step = 5e-8, .message = 3e-7, .latency = 1e-7, .handshake = 1e-6, .turn = 1e-6};
  p.touch.fill(1 / 40e9);
  p.cross.fill(1 / 30e9);
  p.cross_sum = 1 / 30e9;
  p.sum = 1 / 100e9;
  p.copy = 1 / 15e9;
  p.eager = 1 / 10e9;
  if (is_network) {
    p.latency = 3e-5;
    p.message = 5e-6;
    p.handshake = 3e-5;
    p.link = 1 / 120e6;
    p.burst = 64e3;
    p.copy = 1 / 3e9;
  }
  return p;
}

// Returns the prices of a typical network between hosts. Prices that do not concern messages are copied from `host`.
Prices beyond(const Prices& host) {
  Prices p = host, far = usual(true);
  for (const char* key : {"latency", "message", "handshake", "link", "burst", "copy", "eager"})
    values(p, key)[0] = values(far, key)[0];
  if (p.turn <= 0) p.turn = far.turn;
  return p;
}

struct Knob {
  std::string key;
  std::size_t place;  // index among the values of `key` in the prices
  bool is_between;
};

class Search {
 public:
  Search(const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site, double eager_bytes,
         const Known& known, bool has_burst)
      : rows_(rows), element_bytes_(element_bytes), maps_memory_(maps_memory), site_(site) {
    is_network_ = std::ranges::max(site.host_of) > 0;
    within_ = known.within.value_or(usual(false));
    between_ = known.within && is_network_ ? beyond(*known.within) : usual(is_network_);
    if (!known.within) within_.eager_bytes = known.eager_bytes > 0 ? known.eager_bytes : eager_bytes;
    between_.eager_bytes = eager_bytes;
    if (!has_burst) between_.burst = 0;
    const bool knows_host = known.within && is_network_ && !site.crowded();
    if (known.within && !knows_host) {
      complete(within_);
      complete(between_);
    }
    if (site.crowded() && !known.within) within_.latency = 1.5e-6;
    if (!knows_host) add({"call", "step", "touch", "cross", "sum"}, is_network_);
    if (!knows_host && maps_memory) add({"cross_sum"}, false);
    if (site.crowded()) add({"turn"}, is_network_);
    if (!knows_host) add_message(false);
    if (is_network_) {
      add_message(true);
      add({"link"}, true);
    }
    if (is_network_ && has_burst) add({"burst"}, true);
  }

  std::optional<Minimum> run(const std::function<bool()>& tick) {
    Row start;
    for (const Knob& knob : knobs_) start.push_back(std::log(value(knob)));
    return minimize(
        start, [this](const Row& x) { return errors_at(x); }, tick);
  }

  Fitted result(const Minimum& found) {
    Fitted fitted;
    set(found.x);
    for (std::size_t i = 0; i < knobs_.size(); ++i)
      (knobs_[i].is_between ? fitted.spread_between : fitted.spread)[knobs_[i].key].push_back(found.spread[i]);
    fitted.within = within_;
    fitted.between = between_;
    if (maps_memory_)
      fitted.within.message = fitted.within.handshake = fitted.within.eager = fitted.within.eager_bytes = 0;
    else
      fitted.within.cross_sum = fitted.between.cross_sum = 0;
    for (Prices* prices : {&fitted.within, &fitted.between}) {
      if (!site_.crowded()) prices->turn = 0;
      if (!is_network_) prices->link = prices->burst = 0;
    }
    fitted.error = quantile_of_sizes(found.errors, 50);
    fitted.error_95 = quantile_of_sizes(found.errors, 95);
    return fitted;
  }

 private:
  static void complete(Prices& prices) {  // replaces missing prices, because the fit needs the logarithm of every price
    Prices all = usual(false);
    for (const PriceKey& key : price_keys())
      for (std::size_t i = 0; i < key.count; ++i)
        if (double& value = values(prices, key.name)[i]; value <= 0) value = values(all, key.name)[i];
  }
  void add(const std::vector<const char*>& keys, bool is_between) {
    for (const char* key : keys)
      for (std::size_t i = 0; i < values(within_, key).size(); ++i) knobs_.push_back({key, i, is_between});
  }
  void add_message(bool is_between) {
    add({"latency", "copy"}, is_between);
    if (!maps_memory_) add({"message", "eager", "handshake"}, is_between);
  }
  double& value(const Knob& knob) { return values(knob.is_between ? between_ : within_, knob.key)[knob.place]; }

  void set(const Row& x) {
    for (std::size_t i = 0; i < knobs_.size(); ++i) value(knobs_[i]) = std::exp(x[i]);
  }

  Row errors_at(const Row& x) {
    set(x);
    Row errors;
    for (const Timed& row : rows_) {
      const double seconds = maps_memory_ ? mapped(row.ranks, element_bytes_, site_, within_)
                                          : messages(row.ranks, element_bytes_, site_, within_, between_);
      errors.push_back(std::log(seconds / row.seconds));
    }
    return errors;
  }

  const std::vector<Timed>& rows_;
  std::int64_t element_bytes_;
  bool maps_memory_, is_network_ = false;
  Site site_;
  Prices within_, between_;
  std::vector<Knob> knobs_;
};

}  // namespace

std::optional<Fitted> fit(const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site,
                          const std::function<bool()>& tick, const Known& known) {
  std::optional<Fitted> best;
  double least = 0, best_eager_bytes = 0;
  const bool is_network = std::ranges::max(site.host_of) > 0;
  for (const double eager_bytes : usual_eager_bytes) {
    Search search(rows, element_bytes, maps_memory, site, eager_bytes, known, false);
    const std::optional<Minimum> found = search.run(tick);
    if (!found) return std::nullopt;
    if (!best || found->cost < least) {
      best = search.result(*found);
      least = found->cost;
      best_eager_bytes = eager_bytes;
    }
    if (maps_memory || (known.eager_bytes > 0 && !is_network)) break;
  }
  if (!is_network) return best;
  double least_with_burst = least / worth_a_burst;
  for (const double eager_bytes : {best_eager_bytes, *std::prev(std::end(usual_eager_bytes))}) {
    Search search(rows, element_bytes, maps_memory, site, eager_bytes, known, true);
    const std::optional<Minimum> found = search.run(tick);
    if (!found) return std::nullopt;
    if (found->cost < least_with_burst) {
      best = search.result(*found);
      least_with_burst = found->cost;
    }
  }
  return best;
}

}  // namespace chorale::prediction
