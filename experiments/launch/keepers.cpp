#include "experiments/launch/keepers.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/guard/guard.hpp"
#include "src/base/host.hpp"
#include "src/base/launcher.hpp"
#include "src/base/wait.hpp"

namespace chorale::launch {

Keepers::Keepers(std::string name, std::filesystem::path folder, bool on_this_host, Clock& clock, Log& log)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      on_this_host_(on_this_host),
      clock_(clock),
      log_(log),
      lines_(clock) {}

Keepers::~Keepers() {
  if (forked_ > 0 && kill(forked_, SIGKILL) == 0) waitpid(forked_, nullptr, 0);
  for (HostKeeper& keeper : keepers_) end(keeper);
  for (; !ending_.empty(); clock_.sleep(0.01)) reap();
}

void Keepers::end(HostKeeper& keeper) {
  if (keeper.launcher <= 0) return;
  kill(keeper.launcher, SIGTERM);
  ending_.emplace_back(std::exchange(keeper.launcher, -1), clock_.seconds());
}

void Keepers::reap() {
  constexpr double patience_seconds = 2;
  std::erase_if(ending_, [this](const std::pair<int, double>& one) {
    if (clock_.seconds() - one.second > patience_seconds) kill(one.first, SIGKILL);
    return waitpid(one.first, nullptr, WNOHANG) != 0;
  });
}

// Starts the keeper, also again after its death. The snapshots that it held are then lost; checkpoints remain.
void Keepers::tend_this_host() {
  if (forked_ > 0 && waitpid(forked_, nullptr, WNOHANG) == 0) return;
  if (forked_ > 0) log_.warn("the keeper of snapshots is dead: the run goes on from its newest checkpoint");
  forked_ = Keeper::start(name_);
  is_usable_ = forked_ > 0;
  if (!is_usable_) log_.warn("no keeper can be started: the run has no snapshots in memory");
}

std::vector<std::string> Keepers::tend(const std::vector<std::string>& hosts) {
  std::vector<std::string> failed;
  if (on_this_host_) {
    if (is_usable_) tend_this_host();
    return failed;
  }
  for (const std::string& host : hosts)
    if (std::ranges::find(keepers_, host, &HostKeeper::host) == keepers_.end()) start(host);
  hear();
  reap();
  for (auto keeper = keepers_.begin(); keeper != keepers_.end();) {
    const std::string why = why_failed(*keeper);
    if (why.empty()) {
      ++keeper;
      continue;
    }
    log_.warn("the host {} has no keeper of snapshots: {}", keeper->host, why);
    failed.push_back(keeper->host);
    lines_.close(keeper->host);
    std::erase_if(kept_, [&](const auto& one) { return one.first == keeper->host; });
    end(*keeper);
    keeper = keepers_.erase(keeper);
  }
  // It can have served a host under two names.
  if (!failed.empty()) std::erase_if(keepers_, [](const HostKeeper& keeper) { return keeper.shares; });
  return failed;
}

void Keepers::start(const std::string& host) {
  if (invitation_.empty()) invitation_ = lines_.invite(OtherGuards::Invited::other_hosts);
  const std::filesystem::path said = log_of(host);
  std::vector<std::string> environment = own_environment(), passed_on = own_variables();
  std::erase_if(environment, [](const std::string& one) {
    return one.starts_with(fmt::format("{}=", supervisor_variable)) || one.starts_with("SLURM_HOSTFILE=");
  });
  environment.push_back(fmt::format("{}={}", supervisor_variable, invitation_));
  if (std::ranges::count(passed_on, supervisor_variable) == 0) passed_on.emplace_back(supervisor_variable);
  const std::vector<std::string> words = Launcher().command_on(host, {executable_, "keep", name_, host}, passed_on);
  StartedChild child = start_child({.words = words, .output = said, .errors = said, .environment = std::move(environment)});
  keepers_.push_back({.host = host, .launcher = child.pid, .began = clock_.seconds(), .trouble = std::move(child.trouble)});
}

void Keepers::hear() {
  for (const auto& [from, words] : lines_.move()) {
    if (!words.kept) continue;
    const auto keeper = std::ranges::find(keepers_, words.host, &HostKeeper::host);
    if (keeper == keepers_.end()) continue;
    keeper->answers = true;
    keeper->listed = clock_.seconds();
    std::erase_if(kept_, [&](const auto& one) { return one.first == words.host; });
    kept_.emplace_back(words.host, kept_ranks_in(*words.kept));
  }
  lines_.beat([] { return GuardWords{.host = host_name()}; });
}

std::string Keepers::why_failed(HostKeeper& keeper) {
  if (keeper.shares) return "";
  if (!keeper.trouble.empty()) return fmt::format("its launcher cannot be started: {}", keeper.trouble);
  const auto code = keeper.launcher > 0 ? code_if_ended(keeper.launcher, "a keeper") : std::optional(127);
  if (code) keeper.launcher = -1;
  keeper.shares = code == Keeper::another_keeps;  // srun also ends with code 0 if it cannot start the keeper
  if (keeper.shares) return "";
  if (code) return fmt::format("its launcher ended with code {} ({})", *code, log_of(keeper.host).string());
  const double limit = time_limit(60);
  if (!keeper.answers) return clock_.seconds() - keeper.began > limit ? fmt::format("no answer for {:.0f} s", limit) : "";
  // Under Slurm, the launcher of a keeper goes on for minutes after its host is lost, so only the connection counts.
  double silent = std::numeric_limits<double>::infinity();
  for (const OtherGuards::Guard& line : lines_.guards())
    if (line.words.host == keeper.host && !line.ended) silent = std::min(silent, line.silent);
  if (std::isinf(silent)) return "its connection has ended";
  return silent >= limit ? fmt::format("silent for {:.0f} s", silent) : "";
}

bool Keepers::are_ready(const std::vector<std::string>& hosts) const {
  return on_this_host_ || std::ranges::all_of(hosts, [this](const std::string& host) {
           const auto keeper = std::ranges::find(keepers_, host, &HostKeeper::host);
           return keeper != keepers_.end() && (keeper->answers || keeper->shares);
         });
}

void Keepers::refresh() {
  constexpr double patience_seconds = 1;
  const double begun = clock_.seconds();
  lines_.say({.host = host_name(), .asks = true});
  const auto is_known = [&](const HostKeeper& keeper) { return !keeper.answers || keeper.listed >= begun; };
  for (; clock_.seconds() - begun < patience_seconds && !std::ranges::all_of(keepers_, is_known); clock_.sleep(1e-3)) hear();
}

std::vector<KeptRank> Keepers::list(const std::vector<std::string>& hosts) {
  if (on_this_host_) return KeeperLine(name_).list();
  std::vector<KeptRank> all;
  for (const auto& [host, kept] : kept_)
    if (std::ranges::count(hosts, host) > 0) all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

}  // namespace chorale::launch
