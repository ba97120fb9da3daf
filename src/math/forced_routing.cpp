#include "src/math/forced_routing.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/random.hpp"
#include "src/math/router.hpp"

namespace chorale {
namespace {

// Draws k experts without replacement. Each expert gets a random time from the exponential distribution whose rate is the
// expert's probability. The k experts with the shortest times are drawn (Efraimidis & Spirakis 2006). The score of an expert
// is its negated time.
class Draw {
 public:
  Draw(const RoutingRule& rule, std::int64_t block, bool zipf)
      : rule_(rule),
        random_{.seed = 0x726f7574696e67, .site = static_cast<std::uint32_t>(block)},
        zipf_(zipf),
        scores_(static_cast<std::size_t>(rule.experts)),
        ids_(scores_.size()) {}

  void at(std::int64_t position, std::int32_t* chosen) {
    random_.fill_uniform(static_cast<std::uint64_t>(position * rule_.experts), scores_);
    for (std::size_t e = 0; e < scores_.size(); ++e)
      scores_[e] = math::log(scores_[e]) * (zipf_ ? static_cast<float>(e + 1) : 1.0f);
    std::iota(ids_.begin(), ids_.end(), 0);
    routing::best_first(ids_, rule_.chosen, scores_.data());
    std::copy_n(ids_.begin(), rule_.chosen, chosen);
  }

 private:
  const RoutingRule& rule_;
  Random random_;
  bool zipf_;
  std::vector<float> scores_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

std::vector<std::int32_t> forced_choices(ForcedRouting routing, const RoutingRule& rule, std::int64_t block) {
  const std::int64_t k = rule.chosen;
  std::vector<std::int32_t> choices(static_cast<std::size_t>(rule.sequence * k));
  Draw draw(rule, block, routing == ForcedRouting::zipf);
  for (std::int64_t position = 0; position < rule.sequence; ++position) {
    std::int32_t* const chosen = choices.data() + position * k;
    switch (routing) {
      case ForcedRouting::balanced:
        for (std::int64_t j = 0; j < k; ++j) chosen[j] = static_cast<std::int32_t>((position * k + j) % rule.experts);
        break;
      case ForcedRouting::uniform:
      case ForcedRouting::zipf: draw.at(position, chosen); break;
      case ForcedRouting::one: std::iota(chosen, chosen + k, 0);
    }
    std::sort(chosen, chosen + k);
  }
  return choices;
}

}  // namespace chorale
