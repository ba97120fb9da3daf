#include "experiments/launch/ends.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::launch {

EndOfRun end_of_run(const std::optional<Verdict>& verdict, int code, const std::string& status, bool was_asked,
                    bool was_started) {
  constexpr int signaled = 128;
  EndOfRun end{.exit_code = code};
  if (verdict && verdict->kind != VerdictKind::asked_to_end) {
    if (verdict->kind == VerdictKind::failed) end.exit_code = verdict->exit_code;
    const bool gave_up_waiting = end.exit_code == static_cast<int>(Exit::watchdog);  // by its own time limit: a hang
    end.how = verdict->kind == VerdictKind::failed && !gave_up_waiting ? Ended::failed : Ended::died;
    end.rank = verdict->rank;
    end.doing = verdict->doing;
  } else if (code == 0 && status == "ok") {
    end.how = Ended::complete;
  } else if (was_asked || status == "stopped" || verdict) {
    end.how = Ended::stopped;
  } else if (code == static_cast<int>(Exit::watchdog) || code > signaled) {
    end.how = Ended::died;
  } else {
    const bool is_own = code == static_cast<int>(Exit::usage) || code == static_cast<int>(Exit::check);
    end.how = code == 0 ? Ended::unknown : was_started || is_own ? Ended::failed : Ended::not_started;
  }
  return end;
}

EventKind kind_of(const std::optional<Verdict>& verdict, const EndOfRun& end) {
  if (end.how == Ended::stopped) return EventKind::stopped;
  if (verdict && verdict->kind == VerdictKind::hung) return EventKind::hung;
  if (verdict && verdict->kind == VerdictKind::host_gone) return EventKind::host_gone;
  return end.how == Ended::died ? EventKind::died : EventKind::failed;
}

std::string in_words(const std::optional<Verdict>& verdict, const EndOfRun& end) {
  if (end.how == Ended::stopped)
    return end.exit_code == 0 ? "the ranks saved and ended"
                              : "the ranks were asked to end, and were killed before they had saved";
  if (!verdict) return fmt::format("the launcher ended with code {}, without a verdict", end.exit_code);
  const std::string who = verdict->rank >= 0 ? fmt::format("rank {} on {}", verdict->rank, verdict->host) : "the run";
  const std::string where = verdict->doing.empty() ? "" : " in " + verdict->doing;
  switch (verdict->kind) {
    case VerdictKind::hung: return fmt::format("{} hung{} for {}", who, where, human_seconds(verdict->silent_seconds));
    case VerdictKind::host_gone: return fmt::format("the host {} is gone", verdict->host);
    case VerdictKind::failed: return fmt::format("{} failed{}", who, where);
    case VerdictKind::launcher_gone: return fmt::format("the launcher of the ranks on {} is gone", verdict->host);
    default: return fmt::format("{} {}{}", who, verdict->end.empty() ? "died" : verdict->end, where);
  }
}

std::string lost_host(const OtherGuards& links) {
  const auto is_lost = [](const OtherGuards::Guard& guard) {
    return guard.ended && guard.words.look && guard.words.look->here > 0;
  };
  const auto& guards = links.guards();
  const auto lost = std::ranges::find_if(guards, is_lost);
  return lost == guards.end() || std::ranges::all_of(guards, is_lost) ? "" : lost->words.host;
}

}  // namespace chorale::launch
