// What users ask of a supervisor, by signals and by `chorale resize`: the end, or another number of ranks.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <string_view>

#include "experiments/launch/supervisor.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale::launch {

void Supervisor::hear_user(Watch& watch) {
  while (const auto signal = signals_.pending()) {
    if (*signal == SIGUSR2) {
      log_.info("launch: {}", resize(static_cast<std::int64_t>(slots_.size())));
      if (is_resizing_) end_softly(watch);
    } else if (wants_end_) {  // the second request
      watch.guards.say({.host = host_name(), .ends = "now"});
      watch.verdict = watch.verdict.value_or(Verdict{.kind = VerdictKind::asked_to_end});
      watch.verdict_at = std::min(watch.verdict_at > 0 ? watch.verdict_at : now(), now());
    } else {
      wants_end_ = true;
      log_.info("launch: asks the ranks to save and to end; a second signal ends them at once");
      end_softly(watch);
    }
  }
}

void Supervisor::end_softly(Watch& watch) {
  if (watch.ends_at == 0) watch.ends_at = now();
}

// A guard asks the ranks by SIGUSR1. A launcher that gets SIGTERM would kill them before they have saved. Guards that join
// later are asked when they have joined. Without guards (CHORALE_GUARD=no), the launcher passes SIGUSR1 on once the ranks
// run.
void Supervisor::pass_on_the_request(Watch& watch, int launcher) {
  if (watch.ends_at == 0) return;
  for (OtherGuards::Guard& guard : watch.guards.guards())
    if (guard.words.look && !guard.ended && watch.asked.insert(&guard).second)
      watch.guards.say(guard, {.host = host_name(), .ends = "soon"});
  if (watch.asked.empty() && watch.run.newest_step() >= 0 && watch.asked.insert(nullptr).second) kill(launcher, SIGUSR1);
}

void Supervisor::hear_user_between_starts() {
  while (const auto signal = signals_.pending())
    if (*signal == SIGUSR2)
      log_.info("launch: {}", resize(static_cast<std::int64_t>(slots_.size())));
    else
      wants_end_ = true;
  control_.serve([this](const std::string& text) { return answer(text); });
  is_resizing_ = false;  // no start has to end for it
}

std::string Supervisor::answer(const std::string& request) {
  constexpr std::string_view verb = "resize ";
  if (!request.starts_with(verb))
    return "error: this supervisor does not know the request\n  use the same version of chorale";
  return resize(std::atoll(request.c_str() + verb.size()));
}

std::string Supervisor::resize(std::int64_t ranks) {
  const auto slots = static_cast<std::int64_t>(slots_.size()), live = static_cast<std::int64_t>(slots_.live(now()));
  if (ranks < 1 || ranks > slots)
    return fmt::format("error: this launch cannot have {} ranks\n  it has {} slots\n  name a number from 1 to {}", ranks,
                       slots, slots);
  if (ranks > live)
    return fmt::format("error: only {} of {} slots are live\n  the next leaves quarantine in {}\n  ask again then", live,
                       slots, human_seconds(slots_.next_return(now()) - now()));
  Situation there = situation();
  there.live = ranks;
  there.fewest = std::min(there.fewest, ranks);
  std::string why_not;
  const auto chosen = choose(layouts_.between(there.fewest, ranks), there, &why_not);
  if (!chosen)
    return fmt::format("error: no layout of {} ranks is possible\n  {}\n  name another number of ranks", ranks, why_not);
  most_ranks_ = ranks;
  if (running_ && chosen->layout.layout == running_->layout)
    return fmt::format("ok: the run is on {} already", running_->layout);
  is_resizing_ = true;
  return fmt::format("ok: the run saves, and goes on on {}", chosen->layout.layout);
}

}  // namespace chorale::launch
