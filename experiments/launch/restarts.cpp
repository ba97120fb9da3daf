#include "experiments/launch/restarts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.hpp"

namespace chorale::launch {
namespace {

constexpr std::int64_t most_same_deaths = 3, most_failures = 2;
constexpr double longest_wait_seconds = 60;

}  // namespace

NextStart Restarts::after(const EndOfRun& end) {
  if (end.how == Ended::complete || end.how == Ended::stopped) return {};
  const bool progressed = end.saved > before_.saved;
  if (progressed) fruitless_ = same_deaths_ = failures_ = 0;
  ++fruitless_;
  const bool can_recover = end.how == Ended::not_started && end.saved >= 0;
  const bool is_failure = end.how != Ended::died && !can_recover;
  failures_ = is_failure ? failures_ + 1 : 0;
  const bool repeats = end.how == Ended::died && before_.how == Ended::died && end.rank >= 0 && end.rank == before_.rank &&
                       end.doing == before_.doing;
  same_deaths_ = end.how != Ended::died ? 0 : repeats && !progressed ? same_deaths_ + 1 : 1;
  before_ = end;

  const int died = static_cast<int>(Exit::watchdog);
  const bool cannot_help = end.exit_code == static_cast<int>(Exit::usage) || end.exit_code == static_cast<int>(Exit::check);
  if (end.how == Ended::failed && cannot_help)
    return give_up(end.exit_code, fmt::format("a rank ended with code {}, which another start would repeat", end.exit_code));
  if (failures_ >= most_failures)
    return end.how == Ended::unknown
               ? give_up(died, "two starts in a row ended without a reason")
               : give_up(static_cast<int>(Exit::runtime),
                         end.how == Ended::failed ? "the same state failed twice" : "the launcher started no rank twice");
  if (same_deaths_ >= most_same_deaths)
    return give_up(died, fmt::format("{} has killed rank {} {} times", end.doing, end.rank, same_deaths_));
  if (count_ >= most_) return give_up(died, fmt::format("--max-restarts is {}", most_));
  ++count_;
  const double wait = fruitless_ <= 1 ? 0 : std::exp2(std::min<std::int64_t>(fruitless_ - 2, 10));
  return {.comes = true, .wait_seconds = std::min(wait, longest_wait_seconds)};
}

}  // namespace chorale::launch
