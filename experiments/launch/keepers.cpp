#include "experiments/launch/keepers.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "src/base/guard/guard.hpp"
#include "src/base/host.hpp"
#include "src/base/launcher.hpp"
#include "src/base/text.hpp"
#include "src/base/wait.hpp"

namespace chorale::launch {

Keepers::Keepers(std::string name, std::filesystem::path folder, bool on_this_host, Clock& clock, Log& log)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      on_this_host_(on_this_host),
      clock_(clock),
      log_(log),
      lines_(clock),
      heard_(clock.seconds()) {}

Keepers::~Keepers() {
  if (forked_ > 0 && kill(forked_, SIGKILL) == 0) waitpid(forked_, nullptr, 0);
  for (HostKeeper& keeper : keepers_) end(keeper);
}

// A keeper ends when its connection ends. Its launcher is killed only if it does not end by itself.
void Keepers::end(HostKeeper& keeper) {
  if (keeper.launcher <= 0) return;
  constexpr double patience_seconds = 2;
  kill(keeper.launcher, SIGTERM);
  for (const double until = clock_.seconds() + patience_seconds; clock_.seconds() < until; clock_.sleep(0.01))
    if (waitpid(keeper.launcher, nullptr, WNOHANG) != 0) return;
  kill(keeper.launcher, SIGKILL);
  waitpid(keeper.launcher, nullptr, 0);
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
  for (auto keeper = keepers_.begin(); keeper != keepers_.end();) {
    const std::string why = why_failed(*keeper);
    if (why.empty()) {
      ++keeper;
      continue;
    }
    log_.warn("the host {} has no keeper of snapshots any more: {}", keeper->host, why);
    failed.push_back(keeper->host);
    lines_.close(keeper->host);
    std::erase_if(kept_, [&](const auto& one) { return one.first == keeper->host; });
    end(*keeper);
    keeper = keepers_.erase(keeper);
  }
  return failed;
}

void Keepers::start(const std::string& host) {
  if (invitation_.empty()) invitation_ = lines_.invite(OtherGuards::Invited::other_hosts);
  const std::filesystem::path said = log_of(host);
  std::vector<std::string> environment = own_environment();
  std::erase_if(environment, [](const std::string& one) {
    return one.starts_with(fmt::format("{}=", supervisor_variable)) || one.starts_with("SLURM_HOSTFILE=");
  });
  environment.push_back(fmt::format("{}={}", supervisor_variable, invitation_));
  const std::vector<std::string> words =
      Launcher().command_on(host, {executable_, "keep", name_, host}, {supervisor_variable});
  const StartedChild child =
      start_child({.words = words, .output = said, .errors = said, .environment = std::move(environment)});
  keepers_.push_back({.host = host, .launcher = child.pid, .began = clock_.seconds()});
}

void Keepers::hear() {
  constexpr double words_seconds = 0.5, longest_pause = 2;
  const double now = clock_.seconds(), passed = now - std::exchange(heard_, now);
  for (const auto& [from, words] : lines_.move()) {
    if (!words.kept) continue;
    const auto keeper = std::ranges::find(keepers_, words.host, &HostKeeper::host);
    if (keeper == keepers_.end()) continue;
    keeper->answers = true;
    std::erase_if(kept_, [&](const auto& one) { return one.first == words.host; });
    kept_.emplace_back(words.host, kept_ranks_in(*words.kept));
  }
  lines_.wait(std::min(passed, longest_pause));
  if (now - said_ < words_seconds) return;
  said_ = now;
  lines_.say({.host = host_name()});
}

std::string Keepers::why_failed(HostKeeper& keeper) {
  if (keeper.shares) return "";
  const auto code = keeper.launcher > 0 ? code_if_ended(keeper.launcher, "a keeper") : std::optional(127);
  if (code) keeper.launcher = -1;
  keeper.shares = code == 0 && !keeper.answers;
  if (keeper.shares) return "";
  if (code) return fmt::format("its launcher ended with code {} ({})", *code, log_of(keeper.host).string());
  const double limit = time_limit(60);
  for (const OtherGuards::Guard& line : lines_.guards()) {
    if (line.words.host != keeper.host || !keeper.answers) continue;
    if (limit > 0 && !line.ended && line.silent >= limit) return fmt::format("silent for {:.0f} s", line.silent);
  }
  if (limit > 0 && !keeper.answers && clock_.seconds() - keeper.began > limit)
    return fmt::format("no answer for {:.0f} s", limit);
  return "";
}

bool Keepers::are_ready(const std::vector<std::string>& hosts) const {
  return on_this_host_ || std::ranges::all_of(hosts, [this](const std::string& host) {
           const auto keeper = std::ranges::find(keepers_, host, &HostKeeper::host);
           return keeper != keepers_.end() && (keeper->answers || keeper->shares);
         });
}

std::vector<KeptRank> Keepers::list() {
  if (on_this_host_) return KeeperLine(name_).list();
  std::vector<KeptRank> all;
  for (const auto& [host, kept] : kept_) all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

}  // namespace chorale::launch
