#include "src/base/guard/watchman.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"
#include "src/base/guard/guard_words.hpp"
#include "src/base/guard/local_ranks.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/guard/patience.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace {

constexpr double between_looks_seconds = 0.1;
constexpr double words_seconds = 0.5;           // interval between two messages to other guards
constexpr double deadlock_seconds = 1;          // time without progress before the guard searches for a deadlock
constexpr double request_seconds = 0.5;         // time from a request to end until the guard reports why ranks have not
                                                // ended
constexpr double grace_seconds = 4;             // time for the launcher to end the ranks after the guard found that the run
                                                // cannot go on
constexpr double grace_of_orphans_seconds = 1;  // time for ranks to end themselves if they have no launcher
constexpr int died_or_hung = static_cast<int>(Exit::watchdog);  // the exit code

Verdict verdict_on(const SeenRank& rank, VerdictKind kind) {
  return {.kind = kind,
          .rank = rank.page.rank,
          .host = fixed_text(rank.page.host),
          .end = rank.end,
          .doing = fixed_text(rank.page.doing),
          .exit_code = rank.page.exit_code};
}

class Watchman {
 public:
  Watchman(Descriptor listening, WatchmansJob job, Clock& clock)
      : clock_(clock),
        job_(std::move(job)),
        ranks_(std::move(listening), job_.ranks_on_host, clock),
        others_(clock),
        supervisor_(clock),
        looked_(clock.seconds()) {
    supervisor_.join(job_.supervisor);
  }

  // Returns after the last rank of the host has ended.
  void watch() {
    while (!ranks_.are_over()) {
      wait_for_news();
      hear_ranks();
      hear_guards();
      hear_supervisor();
      if (clock_.seconds() - looked_ >= between_looks_seconds) look();
      const double grace = orphaned_ ? grace_of_orphans_seconds : grace_seconds;
      if (lost_at_ >= 0 && clock_.seconds() - lost_at_ > grace) ranks_.end();
    }
    clean_up();
  }

 private:
  void wait_for_news() {
    std::vector<pollfd> files;
    ranks_.add_to(files);
    others_.add_to(files);
    supervisor_.add_to(files);
    poll(files.data(), files.size(), static_cast<int>(1000 * between_looks_seconds));
  }

  // A rank that failed or exited has reported the reason itself. A request to end comes from a user or from the launcher,
  // and needs no report by the guard.
  void hear_ranks() {
    for (const auto& [rank, request] : ranks_.move(lost_at_ < 0)) {
      if (request == "invite") {
        ranks_.answer(rank, others_.invite());
      } else if (request.starts_with("join ")) {
        others_.join(request.substr(5));
      } else if (request.empty() && lost_at_ < 0) {
        const std::vector<SeenRank> all = everybody();
        const auto ended = std::ranges::find(all, rank, [](const SeenRank& one) { return one.page.rank; });
        const bool by_itself =
            ended->end.starts_with("exited") || ended->end.ends_with("TERM") || ended->end.ends_with("INT");
        const auto failed = ranks_.failed();  // the launcher might have ended this rank because another rank failed
        if (ranks_.asked_to_end() && !failed)
          lose(explain_stop(*ended), verdict_on(*ended, VerdictKind::asked_to_end), died_or_hung, true);
        else if (by_itself || ranks_.asked_to_end())
          lose(fmt::format("rank {} {}", rank, ended->end),
               failed ? verdict_on(*failed, VerdictKind::failed) : verdict_on(*ended, VerdictKind::died),
               failed ? failed->page.exit_code : died_or_hung, true);
        else
          explain(explain_end(*ended, all), verdict_on(*ended, VerdictKind::died));
      }
    }
    // All ranks exit with the exit code of the rank that failed. Thus, the run ends with this code, regardless of which rank
    // the launcher sees end first.
    if (const auto failed = ranks_.failed(); lost_at_ < 0 && failed)
      lose(fmt::format("a rank on {} failed, and has said why", host_name()), verdict_on(*failed, VerdictKind::failed),
           failed->page.exit_code, true);
  }

  void hear_guards() {
    for (const auto& [from, words] : others_.move()) {
      if (words.asks) others_.say(*from, this->words());
      if (words.lost.empty() || lost_at_ >= 0) continue;
      lose(words.lost, words.verdict.value_or(Verdict()), words.exit_code, false);
      others_.say({.host = host_name(), .lost = words.lost, .exit_code = words.exit_code, .verdict = words.verdict});
    }
  }

  // The supervisor starts the run again, so it decides when ranks end. Without it, they end too.
  void hear_supervisor() {
    for (const auto& [from, words] : supervisor_.move()) {
      if (words.ends == "soon") ranks_.ask_to_end();
      if (words.ends != "now") continue;
      if (lost_at_ < 0)
        lose(fmt::format("the launch ended the ranks on {}", host_name()),
             words.verdict.value_or(Verdict{.kind = VerdictKind::asked_to_end, .host = host_name()}), died_or_hung, false);
      ranks_.end();
    }
    // The supervisor says something twice a second.
    const auto is_gone = [this](const OtherGuards::Guard& line) { return line.ended || line.silent >= look_.any; };
    if (lost_at_ >= 0 || std::ranges::none_of(supervisor_.guards(), is_gone)) return;
    orphaned_ = true;
    explain(
        fmt::format("error: the supervisor of the ranks on {} is gone, or the link to it\n  these ranks end too\n  start "
                    "`chorale launch` "
                    "again, with --load and the folder of the checkpoints\n",
                    host_name()),
        {.kind = VerdictKind::launcher_gone, .host = host_name()});
  }

  // The time between two looks counts as at most three look intervals. If the guard itself was not scheduled for longer, the
  // complete machine is busy, and the ranks get more time.
  void look() {
    const double now = clock_.seconds(), passed = std::min(now - std::exchange(looked_, now), 3 * between_looks_seconds);
    look_ = ranks_.look();
    if (now - said_ >= words_seconds) {
      said_ = now;
      others_.say({.host = host_name(), .look = look_, .judges = judges_});
      supervisor_.say({.host = host_name(), .look = look_, .holds = ranks_.numbers()});
    }
    const bool orphaned_now = !orphaned_ && ranks_.orphaned();
    orphaned_ |= orphaned_now;
    if (lost_at_ >= 0) return;
    if (orphaned_now)
      return explain(
          fmt::format("error: the launcher of the ranks on {} is gone\n  these ranks end too\n  start the program "
                      "again\n",
                      host_name()),
          {.kind = VerdictKind::launcher_gone, .host = host_name()});
    answer_request(now);
    Look all = look_;
    bool judged = false;
    for (const OtherGuards::Guard& guard : others_.guards()) {
      const bool is_known =
          guard.words.look && !(guard.ended && guard.words.look->here > 0);  // otherwise the guard has died
      if (is_known) all.add(*guard.words.look);
      judged |= !guard.ended && guard.words.judges;
    }
    judges_ = ranks_.holds(0) && all.ranks >= job_.ranks;
    if (judges_ || judged) ranks_.judged();
    if (judges_) judge_progress(all, passed);
    if (judges_ || judged) warn_of_late_ranks(all, passed);
    others_.wait(passed);
    supervisor_.wait(passed);
    if (lost_at_ < 0) judge_silence();
  }

  // After a request to end, a rank ends only when its step is done, and the launcher might kill the rank before that.
  // Therefore the guard reports while the ranks are still running. Only the guard of rank 0 reports.
  void answer_request(double now) {
    if (has_answered_ || !ranks_.asked_to_end() || !ranks_.holds(0)) return;
    if (asked_at_ < 0) asked_at_ = now;
    if (look_.here == 0 || now - asked_at_ < request_seconds) return;
    has_answered_ = true;
    std::fputs(explain_request(ranks_.seen(), job_.ranks_on_host, job_.after_request).c_str(), stderr);
  }

  // The guard judges whether the run hangs only if it sees all ranks; otherwise each wait applies its own time limit. If
  // there are several hosts, the guard of rank 0 decides.
  void judge_progress(const Look& all, double passed) {
    patience_.see(all, passed);
    const double quiet = patience_.seconds();
    if (quiet < 0.4 * deadlock_seconds) has_asked_ = false;
    const bool all_wait = all.waiters == all.here && all.stopped + all.blocked == 0 && quiet < 2 * deadlock_seconds;
    const bool asks_now = all_wait && quiet >= 0.4 * deadlock_seconds;
    if ((asks_now || patience_.spent() >= 0.8) && !std::exchange(has_asked_, true))
      others_.say({.host = host_name(), .asks = true});
    if (all_wait && quiet >= deadlock_seconds)
      if (const std::string deadlock = explain_deadlock(everybody()); !deadlock.empty())
        return explain(deadlock, {.kind = VerdictKind::hung, .silent_seconds = quiet});
    if (patience_.spent() < 1) return;
    const std::vector<SeenRank> ranks = everybody();
    Verdict verdict{.kind = VerdictKind::hung};
    const std::set<int> late = late_ranks(ranks);
    for (const SeenRank& rank : ranks)
      if (!late.empty() && rank.page.rank == *late.begin()) verdict = verdict_on(rank, VerdictKind::hung);
    verdict.silent_seconds = quiet;
    explain(explain_hang(ranks, quiet), verdict);
  }

  // Ranks can wait outside a call of a communicator, for example during set-up. In such a wait, ranks can wait for long
  // work, such as a file that another rank reads. The guard cannot distinguish such a wait from an endless loop. Therefore
  // the guard only prints one report, which names the waiting ranks and the ranks for which they wait.
  void warn_of_late_ranks(const Look& all, double passed) {
    const bool somebody_waits = all.idled != then_.idled, judged_as_hang = all.waiting != never || all.stopped > 0;
    if (all.done != then_.done || judged_as_hang) {
      then_ = all;
      quiet_ = 0;
      return ranks_.mark();
    }
    if (quiet_ < 0) return;
    quiet_ += passed;
    Look as_if_in_calls = all;
    as_if_in_calls.waiting = all.any;
    if (quiet_ < as_if_in_calls.limit() || !somebody_waits) return;
    if (const std::vector<SeenRank> late = ranks_.late(); !late.empty())
      std::fputs(explain_late(late, ranks_.waiting(), quiet_).c_str(), stderr);
    quiet_ = -1;
  }

  // Every guard gets messages from the other guards twice a second, unless a host or a link has failed. If only the guard of
  // a host has failed, no guard judges the progress of the run any more.
  void judge_silence() {
    for (const OtherGuards::Guard& guard : others_.guards()) {
      if (guard.trusted && !guard.ended && guard.silent >= look_.any)
        return explain(
            fmt::format("error: the host {} is gone, or the link to it\n  {} has not heard from it for {:.0f} s\n  "
                        "check the host and its network; a slow network needs a longer limit: "
                        "CHORALE_TIMEOUT=SECONDS\n",
                        guard.words.host, host_name(), guard.silent),
            {.kind = VerdictKind::host_gone, .host = guard.words.host, .silent_seconds = guard.silent});
    }
  }

  // Lists each rank once, even if several guards have forwarded it.
  std::vector<SeenRank> everybody() const {
    std::vector<SeenRank> all = ranks_.seen();
    for (const OtherGuards::Guard& guard : others_.guards())
      for (const SeenRank& rank : guard.words.ranks)
        if (std::ranges::none_of(all, [&](const SeenRank& one) { return one.page.rank == rank.page.rank; }))
          all.push_back(rank);
    std::ranges::sort(all, {}, [](const SeenRank& rank) { return rank.page.rank; });
    return all;
  }

  GuardWords words() const { return {.host = host_name(), .look = look_, .ranks = ranks_.seen()}; }

  // Called if the run cannot go on. Prints the reason, and passes it to all ranks.
  void explain(const std::string& explanation, Verdict verdict) {
    std::fputs(explanation.c_str(), stderr);
    lose(explanation, std::move(verdict), died_or_hung, true);
  }

  // Called if the run cannot go on and the cause has already been reported. Makes the waiting ranks end with this exit code.
  // Marks the run as lost, so that the waits of all ranks end. Then the launcher ends the ranks that are not waiting.
  void lose(const std::string& why, Verdict verdict, int exit_code, bool tell_others) {
    lost_at_ = clock_.seconds();
    ranks_.lose(why, exit_code);
    if (tell_others) others_.say({.host = host_name(), .lost = why, .exit_code = exit_code, .verdict = verdict});
    others_.move();
    GuardWords said = words();
    said.lost = why;
    said.exit_code = exit_code;
    said.verdict = std::move(verdict);
    said.holds = ranks_.numbers();
    supervisor_.say(said);
    supervisor_.move();
    if (tell_others) others_.say({.host = host_name(), .ranks = said.ranks});
    const std::vector<SeenRank> local = std::move(said.ranks);
    said.ranks = everybody();
    if (!local.empty()) write_dump(said, local.front());
  }

  // Removes leftover files, which MPI and the launcher remove themselves unless they are killed.
  void clean_up() {
    const GuardWords farewell{.host = host_name(), .look = ranks_.look()};
    others_.say(farewell);
    supervisor_.say(farewell);
    constexpr double patience_seconds = 1;
    for (const double until = clock_.seconds() + patience_seconds; clock_.seconds() < until; clock_.sleep(1e-3)) {
      others_.move();
      supervisor_.move();
      if (others_.has_said_all() && supervisor_.has_said_all()) break;
    }
    job_.leftovers.remove();
  }

  Clock& clock_;
  const WatchmansJob job_;
  LocalRanks ranks_;
  OtherGuards others_, supervisor_;
  Patience patience_;
  Look look_;                     // the newest state of the ranks of this host
  Look then_;                     // the state of all ranks at their latest progress
  double quiet_ = 0;              // seconds since the latest progress, or −1 after a warning was printed
  double looked_ = 0, said_ = 0;  // times of the latest look and of the latest message
  bool has_asked_ = false;        // whether this guard has asked the other guards for the flight recorders of their ranks
  double lost_at_ = -1;           // time at which the guard found that the run cannot go on, or −1 if it can go on
  double asked_at_ = -1;          // time at which a request to end was first seen
  bool orphaned_ = false, judges_ = false, has_answered_ = false;
};

}  // namespace

void watch(Descriptor listening, WatchmansJob job, Clock& clock) {
  Watchman(std::move(listening), std::move(job), clock).watch();
}

}  // namespace chorale
