#include "experiments/launch/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "src/base/text.hpp"

namespace chorale::launch {
namespace {

double work_per_rank(const Possible& layout) {
  return 1 / (static_cast<double>(layout.ranks) * std::max(1 - layout.bubble, 1e-3));
}

std::string cost_of(const Possible& layout, bool is_predicted) {
  if (is_predicted) return fmt::format("{} a step, predicted by the machine file", human_seconds(layout.seconds));
  return fmt::format("no predicted time: least work per rank{}, {} sent per step",
                     layout.bubble > 0 ? fmt::format(", bubble {:.0f} %", 100 * layout.bubble) : "",
                     human_bytes(layout.sent_bytes));
}

}  // namespace

std::optional<Chosen> choose(const std::vector<Possible>& possible, const Situation& now, std::string* why_not) {
  std::vector<Possible> fitting;
  std::int64_t too_large = 0;
  for (const Possible& layout : possible) {
    if (layout.ranks > now.live || layout.ranks < now.fewest) continue;
    if (now.same_layout && layout.layout != now.asked) continue;
    const bool fits = now.memory_bytes == 0 || layout.memory_bytes <= now.memory_bytes;
    too_large += !fits;
    if (fits) fitting.push_back(layout);
  }
  if (fitting.empty()) {
    if (why_not)
      *why_not = now.live < now.fewest ? fmt::format("{} of at least {} slots are live", now.live, now.fewest)
                 : too_large > 0       ? fmt::format("{} layouts of {} to {} ranks do not fit in {} per rank", too_large,
                                                     now.fewest, now.live, human_bytes(now.memory_bytes))
                 : now.same_layout     ? fmt::format("{} needs more than {} slots (--same-layout)", now.asked, now.live)
                                       : fmt::format("no layout of {} to {} ranks is legal", now.fewest, now.live);
    return std::nullopt;
  }
  if (const auto asked = std::ranges::find(fitting, now.asked, &Possible::layout); asked != fitting.end())
    return Chosen{*asked, "as asked for"};
  const bool is_predicted = std::ranges::all_of(fitting, [](const Possible& layout) { return layout.seconds >= 0; });
  const auto cost = [&](const Possible& layout) {
    return std::tuple(is_predicted ? layout.seconds : work_per_rank(layout), layout.sent_bytes, layout.layout);
  };
  const auto best = std::ranges::min_element(fitting, {}, cost);
  return Chosen{*best, fmt::format("of {} layouts of {} to {} ranks{}: {}", fitting.size(), now.fewest, now.live,
                                   too_large > 0 ? fmt::format(" ({} more do not fit in memory)", too_large) : "",
                                   cost_of(*best, is_predicted))};
}

double scaled(double seconds, const Possible& here, const Possible& there) {
  if (here.seconds > 0 && there.seconds > 0) return seconds * there.seconds / here.seconds;
  return seconds * work_per_rank(there) / work_per_rank(here);
}

bool pays(double seconds_here, double seconds_there, std::int64_t steps_left, double restart_seconds) {
  return static_cast<double>(steps_left) * (seconds_here - seconds_there) > restart_seconds;
}

}  // namespace chorale::launch
