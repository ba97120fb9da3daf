#include "src/base/guard/watchman.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace {

constexpr double look_seconds = 0.1;
constexpr double words_seconds = 0.5;           // between two words to other guards
constexpr double answer_seconds = 0.7;          // for other guards to send the flight recorders of their ranks
constexpr double deadlock_seconds = 1;          // of silence, until ranks that wait for each other are looked for
constexpr double grace_seconds = 10;            // for the launcher to end the ranks after the run is lost; …
constexpr double grace_of_orphans_seconds = 1;  // … and for ranks to end themselves if there is no launcher

bool asked_to_end(const std::string& end) {
  return std::ranges::any_of(std::array{"SIGTERM", "SIGINT", "SIGHUP"},
                             [&](const char* signal) { return end.ends_with(signal); });
}

}  // namespace

Watchman::Watchman(Descriptor listening, Job job)
    : job_(std::move(job)),
      launcher_(static_cast<int>(syscall(SYS_pidfd_open, job_.launcher, 0))),
      ranks_(std::move(listening), job_.ranks_on_host, clock_),
      others_(clock_),
      looked_(clock_.seconds()) {}

// A look that comes late counts as one in time: then the guard did not run either, so the whole machine is busy.
void Watchman::watch() {
  while (!ranks_.are_over(lost_at_ >= 0)) {
    wait_for_news();
    const double now = clock_.seconds(), passed = std::min(now - std::exchange(looked_, now), 3 * look_seconds);
    hear_ranks();
    hear_guards();
    if (others_.any() && now - said_ >= words_seconds) {
      said_ = now;
      others_.say(to_text(GuardWords{host_name(), ranks_.look()}));
    }
    if (lost_at_ < 0) judge_progress(passed);
    if (lost_at_ < 0) judge_silence();
    if (lost_at_ >= 0 && now - lost_at_ > (orphaned_ ? grace_of_orphans_seconds : grace_seconds)) ranks_.end();
  }
  clean_up();
}

void Watchman::wait_for_news() {
  std::vector<pollfd> files;
  ranks_.add_to(files);
  others_.add_to(files);
  if (launcher_) files.push_back({launcher_.get(), POLLIN, 0});
  poll(files.data(), files.size(), static_cast<int>(1000 * look_seconds));
  pollfd launcher{launcher_.get(), POLLIN, 0};
  if (!launcher_ || poll(&launcher, 1, 0) <= 0) return;
  launcher_.reset();
  orphaned_ = true;
  if (lost_at_ < 0)
    lose(fmt::format("error: the launcher of the ranks on {} is gone\n  these ranks end too\n  start the program again\n",
                     host_name()));
}

// A rank that failed has said why, and its launcher ends the others. Signals that ask a rank to end come from a user or from
// the launcher, which reports them.
void Watchman::hear_ranks() {
  const std::vector<LocalRanks::News> news = ranks_.move();
  if (lost_at_ < 0 && ranks_.any_failed()) lost_at_ = clock_.seconds();
  for (const auto& [rank, request] : news) {
    if (request == "invite") {
      invited_ = true;
      ranks_.answer(rank, others_.invite());
    } else if (request.starts_with("join ")) {
      others_.join(request.substr(5), to_text(GuardWords{host_name(), ranks_.look()}));
    } else if (request.empty() && lost_at_ < 0) {
      const std::vector<SeenRank> all = everybody();
      const auto ended = std::ranges::find(all, rank, [](const SeenRank& one) { return one.page.rank; });
      if (asked_to_end(ended->end))
        lost_at_ = clock_.seconds();
      else
        lose(explain_end(*ended, all));
    }
  }
}

void Watchman::hear_guards() {
  for (const auto& [from, text] : others_.move()) {
    GuardWords words;
    try {
      words = guard_words_in(text);
    } catch (const Error&) {  // another program's words; what matters will be said again
      continue;
    }
    from->host = words.host;
    if (words.asks) others_.say(*from, to_text(GuardWords{.host = host_name(), .ranks = ranks_.seen()}));
    const auto known = std::ranges::find(heard_, words.host, &GuardWords::host);
    GuardWords& newest = known == heard_.end() ? heard_.emplace_back(GuardWords{words.host}) : *known;
    if (words.look) newest.look = words.look;
    if (!words.ranks.empty()) newest.ranks = words.ranks;
    if (words.lost.empty() || lost_at_ >= 0) continue;
    lost_at_ = clock_.seconds();  // that guard has printed its explanation
    ranks_.lose(words.lost);
    write_dump({.host = host_name(), .lost = words.lost, .ranks = everybody()});
    others_.say(text);
  }
}

// Asks the other guards for their flight recorders shortly before they are needed.
void Watchman::judge_progress(double passed) {
  Look all = ranks_.look();
  for (const GuardWords& words : heard_)
    if (words.look) all.add(*words.look);
  quiet_seconds_ = all.done == std::exchange(done_, all.done) ? quiet_seconds_ + passed : 0;
  if (quiet_seconds_ == 0) asked_ = -1;
  if (job_.several_hosts && !invited_) return;
  // If all ranks wait, they may wait for each other. Otherwise only time can tell.
  const bool all_wait = all.waiters == all.here && quiet_seconds_ < 2 * deadlock_seconds;
  const double limit = all.limit(), judged_at = all_wait ? std::min(deadlock_seconds, limit) : limit;
  if (asked_ < 0 && quiet_seconds_ >= std::max(0.5 * judged_at, judged_at - answer_seconds)) {
    asked_ = looked_;
    others_.say(to_text(GuardWords{.host = host_name(), .asks = true}));
  }
  if (quiet_seconds_ < judged_at) return;
  const std::string deadlock = all_wait ? explain_deadlock(everybody()) : "";
  if (!deadlock.empty())
    lose(deadlock);
  else if (quiet_seconds_ >= limit)
    lose(explain_hang(everybody(), quiet_seconds_));
}

// Every guard hears from the others twice a second, unless a host or a link is gone. Before it ends, a guard says that no
// rank lives on its host.
void Watchman::judge_silence() {
  for (const OtherGuards::Guard& guard : others_.guards()) {
    const auto words = std::ranges::find(heard_, guard.host, &GuardWords::host);
    const bool lives = words != heard_.end() && words->look && words->look->here > 0;
    if (guard.ended && lives)
      return lose(
          fmt::format("error: the host {} is gone\n  {} of its ranks lived; its guard has ended without a word\n  "
                      "check that host; start the program again without it\n",
                      guard.host, words->look->here));
    const double silent = clock_.seconds() - guard.heard;
    if (guard.trusted && !guard.ended && silent >= ranks_.look().any)
      return lose(
          fmt::format("error: the host {} is gone, or the link to it\n  {} has not heard from it for {:.0f} s\n  "
                      "check the host and its network; a slow network needs a longer limit: CHORALE_TIMEOUT=SECONDS\n",
                      guard.host, host_name(), silent));
  }
}

std::vector<SeenRank> Watchman::everybody() const {
  std::vector<SeenRank> all = ranks_.seen();
  for (const GuardWords& words : heard_) all.insert(all.end(), words.ranks.begin(), words.ranks.end());
  std::ranges::sort(all, {}, [](const SeenRank& rank) { return rank.page.rank; });
  return all;
}

// The waits of all ranks see it. Then their launcher ends those that do not wait.
void Watchman::lose(const std::string& explanation) {
  lost_at_ = clock_.seconds();
  std::fputs(explanation.c_str(), stderr);
  const GuardWords words{.host = host_name(), .lost = explanation, .ranks = everybody()};
  ranks_.lose(explanation);
  others_.say(to_text(words));
  others_.move();
  write_dump(words);
}

// Only if the run was lost, because MPI removes its files itself otherwise.
void Watchman::clean_up() {
  others_.say(to_text(GuardWords{host_name(), ranks_.look()}));
  others_.move();
  std::error_code ignored;
  for (const auto& file : ranks_.leftovers()) std::filesystem::remove(file, ignored);
  if (orphaned_ && !job_.session_folder.empty()) std::filesystem::remove_all(job_.session_folder, ignored);
}

}  // namespace chorale
