// Finds out from the guards of the ranks why a start ended, and puts the slots that failed into quarantine.
//
//   verdict of a guard ──▶ first verdict ──▶ the launcher is hurried ──▶ slots in quarantine
//   silence, or a guard lost without a farewell ──▶ host_gone ──┘
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/launch/ends.hpp"
#include "experiments/launch/supervisor.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/base/wait.hpp"

namespace chorale::launch {

// The first verdict is the cause. Later verdicts, of other hosts, can be its consequences.
void Supervisor::hear_guards(Watch& watch) {
  for (const auto& [from, words] : watch.guards.move()) {
    if (!words.holds.empty()) {
      const auto known = std::ranges::find(watch.holds, words.host, [](const auto& host) { return host.first; });
      if (known == watch.holds.end()) watch.holds.emplace_back(words.host, words.holds);
    }
    if (!words.verdict || watch.verdict) continue;
    watch.verdict = words.verdict;
    watch.verdict_at = now();
  }
  // Slurm kills the guard of a host with the last rank there, so a guard that is lost after a death proves nothing.
  const bool is_known =
      watch.verdict && (watch.verdict->kind == VerdictKind::died || watch.verdict->kind == VerdictKind::hung);
  if (is_known || !watch.lost.empty()) return;
  watch.lost = lost_host(watch.guards);
  watch.lost_at = now();
}

// Both sides send at least twice a second, so silence means that the host or the link to it is gone.
void Supervisor::judge_silence(Watch& watch) {
  watch.guards.beat([] { return GuardWords{.host = host_name()}; });
  const double here = now(), limit = time_limit(60);
  for (const OtherGuards::Guard& guard : watch.guards.guards()) {
    if (watch.verdict || !guard.trusted || guard.ended || guard.silent < limit) continue;
    watch.verdict = Verdict{.kind = VerdictKind::host_gone, .host = guard.words.host, .silent_seconds = guard.silent};
    watch.verdict_at = here;
  }
}

// mpirun ends if a host is gone, but srun waits for it for minutes. If only the guard has died, the run still makes steps.
void Supervisor::judge_lost_host(Watch& watch) {
  constexpr double patience_seconds = 5, patience_steps = 4;
  const std::string& status = watch.run.status();  // ranks of other hosts can have failed, because they waited for it
  if (watch.verdict || watch.lost.empty() || watch.ends_at > 0 || status == "ok" || status == "stopped") return;
  const double step = watch.run.step_seconds(), quiet = now() - std::max(watch.lost_at, watch.moved_at);
  if (quiet < patience_seconds + (std::isnan(step) ? 0 : patience_steps * step)) return;
  watch.verdict = Verdict{.kind = VerdictKind::host_gone, .host = watch.lost, .silent_seconds = now() - watch.lost_at};
  watch.verdict_at = now();
}

// After the verdict, the launcher ends the ranks. If it does not, as when a host is gone, the supervisor goes further.
void Supervisor::hurry_up(Watch& watch, int launcher, double now) {
  constexpr double kill_ranks_seconds = 1.5, ask_launcher_seconds = 3, kill_launcher_seconds = 6;
  const double passed = now - watch.verdict_at;
  if (passed > kill_ranks_seconds && watch.hurry < 1) {
    watch.hurry = 1;
    watch.guards.say({.host = host_name(), .verdict = watch.verdict, .ends = "now"});
  }
  if (passed > ask_launcher_seconds && watch.hurry < 2) {
    watch.hurry = 2;
    kill(launcher, SIGTERM);
  }
  if (passed > kill_launcher_seconds && watch.hurry < 3) {
    watch.hurry = 3;
    kill(launcher, SIGKILL);
  }
}

void Supervisor::hear_last_words(Watch& watch) {
  constexpr double patience_seconds = 1;
  for (const double until = now() + patience_seconds; now() < until; session_.clock.sleep(1e-3)) {
    hear_guards(watch);
    if (std::ranges::all_of(watch.guards.guards(), &OtherGuards::Guard::ended)) break;
  }
  // A lost host is the cause even if ranks of other hosts failed first, because they could not reach it.
  take_rows(watch);
  const bool ended_well = watch.code == 0 && (watch.run.status() == "ok" || watch.run.status() == "stopped");
  const bool is_known = watch.verdict && watch.verdict->kind == VerdictKind::host_gone;
  if (watch.lost.empty() || ended_well || is_known) return;
  if (!watch.verdict) watch.verdict_at = watch.lost_at;
  watch.verdict = Verdict{.kind = VerdictKind::host_gone, .host = watch.lost};
}

// Without a verdict, hosts from which no guard has spoken could not be reached, as hosts that are still gone.
void Supervisor::lose_silent_hosts(Watch& watch) {
  if (request_.hosts.size() < 2 || watch.code == 0 || watch.holds.size() == slots_.hosts_of_ranks().hosts.size()) return;
  if (watch.verdict && watch.verdict->kind != VerdictKind::hung) return;
  std::set<std::string> silent;
  for (const auto& [host, ranks] : slots_.hosts_of_ranks().hosts) silent.insert(host);
  for (const auto& [host, ranks] : watch.holds)
    if (!ranks.empty()) silent.erase(slots_.host_of(ranks.front()));
  if (silent.empty() || watch.run.newest_step() >= 0) return;
  // A launcher that cannot reach one host starts no rank. If that host was lost before, the others are not at fault.
  const auto was_lost = [this](const std::string& host) { return slots_.was_lost(host); };
  if (std::ranges::any_of(silent, was_lost))
    std::erase_if(silent, [&](const std::string& one) { return !was_lost(one); });
  else if (silent.size() == slots_.hosts_of_ranks().hosts.size())
    return;  // the launcher itself failed, and has said why
  for (const std::string& host : silent) slots_.lose_host(host, now());
  watch.verdict_at = now();
  watch.verdict = Verdict{.kind = VerdictKind::host_gone, .host = join({silent.begin(), silent.end()}, ",")};
}

void Supervisor::quarantine(const Watch& watch) {
  if (!watch.verdict) return;
  const Verdict& verdict = *watch.verdict;
  const bool is_lost = verdict.kind == VerdictKind::died || verdict.kind == VerdictKind::hung;
  if (is_lost && verdict.rank >= 0) slots_.lose(verdict.rank, now());
  if (verdict.kind != VerdictKind::host_gone) return;
  const double lost_at =
      watch.verdict_at - std::max(0.0, verdict.silent_seconds);  // its keeper may already have reported this loss
  for (const auto& [host, ranks] : watch.holds)                  // the name of a host here can differ from its own name
    if (host == verdict.host && !ranks.empty()) return slots_.lose_host(slots_.host_of(ranks.front()), now(), lost_at);
  slots_.lose_host(verdict.host, now(), lost_at);
}

}  // namespace chorale::launch
