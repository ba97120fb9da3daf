#include "parallel/prediction/cpu_step_run.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/engine.hpp"

namespace chorale {
namespace {

// One call in the scripts of all ranks that take part in the call.
struct ScriptTransfer {
  std::vector<int> ranks;       // numbered as in the group of all ranks
  std::vector<int> hosts;       // the hosts of these ranks, each listed once
  int missing = 0;              // number of ranks that must still begin the call before its transfer starts
  double seconds = 0;           // the predicted time of the call, if no other call or work runs
  std::map<int, double> links;  // time, in seconds, for which the call occupies each host's link; empty on one host

  // Returns the fraction of the call's duration during which the call needs the cores of its ranks.
  double on_cores() const {
    double busiest = 0;
    for (const auto& [host, link] : links) busiest = std::max(busiest, link);
    return seconds > 0 ? std::clamp(1 - busiest / seconds, 0.0, 1.0) : 0;
  }
  bool runs = false, over = false;
};

struct RankState {
  std::size_t next = 0;                // index of the next act
  double began = -1;                   // when the rank's work began; −1 if the rank does not compute
  int waits_for = -1;                  // the transfer that the rank waits for; −1 if it waits for no transfer
  std::vector<int> transfers;          // the transfer that belongs to each call of the rank's script
  std::map<std::string, int> counted;  // number of calls begun so far in each group or between each pair of ranks
};

class Simulation {
 public:
  Simulation(const std::vector<const Script*>& scripts, const std::vector<RankGroup>& groups, const prediction::Site& site,
             const Speeds& speeds)
      : scripts_(scripts),
        site_(site),
        speeds_(speeds),
        ranks_(scripts.size()),
        computes_(scripts.size(), 0),
        engine_([this](std::vector<Activity>& activities) { share(activities); }) {
    for (const RankGroup& group : groups)
      for (const int rank : group.ranks) groups_[{rank, group.name}] = &group;
    wanted_.resize(index(std::ranges::max(site.machine_of)) + 1);
    works_.resize(scripts.size());
    calls_.resize(scripts.size());
    on_link_.resize(index(std::ranges::max(site.host_of)) + 1);
  }

  StepTime run() {
    for (int rank = 0; rank < size(); ++rank) go_on(rank);
    engine_.run([this](int id) { id < size() ? end_work(id) : end_transfer(id - size()); });
    for (int rank = 0; rank < size(); ++rank)
      require(ended(rank), "rank {} waits forever in the simulation of a step", rank);
    return {engine_.now(), computes_};
  }

 private:
  int size() const { return static_cast<int>(scripts_.size()); }
  bool ended(int rank) const { return ranks_[index(rank)].next == scripts_[index(rank)]->acts().size(); }
  bool computes(int rank) const { return ranks_[index(rank)].began >= 0; }

  // Advances through the rank's script until the rank has work to do or must wait.
  void go_on(int rank) {
    RankState& state = ranks_[index(rank)];
    const Script& script = *scripts_[index(rank)];
    state.waits_for = -1;
    for (; state.next < script.acts().size(); ++state.next) {
      const Script::Act& act = script.acts()[state.next];
      if (act.kind == Script::Act::Kind::begin) {
        state.transfers.push_back(begin(rank, script.calls()[index(act.call)]));
      } else if (act.kind == Script::Act::Kind::wait) {
        const int transfer = state.transfers[index(act.call)];
        if (transfers_[index(transfer)].over) continue;
        state.waits_for = transfer;
        return;
      } else if (const double seconds = seconds_of(act.work); seconds > 0) {
        state.began = engine_.now();
        return engine_.begin({rank, seconds});
      }
    }
  }

  double seconds_of(const Amounts& work) const {
    double seconds = 0;
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
      if (work[kind] > 0) seconds += work[kind] / speeds_[kind];
    return seconds;
  }

  // The k-th calls of all ranks of a group are the same call. Likewise, the k-th send from rank a to rank b matches the k-th
  // receive on b from a.
  int begin(int rank, const Script::Call& call) {
    const RankGroup& group = *groups_.at({rank, call.group});
    const bool message = call.from >= 0;
    const std::string kind = message ? call.group + std::to_string(call.from) + ">" + std::to_string(call.to) : call.group;
    const int number = ranks_[index(rank)].counted[kind]++;
    const auto [found, is_new] = known_.try_emplace({&group, kind, number}, static_cast<int>(transfers_.size()));
    if (is_new) {
      ScriptTransfer transfer{.seconds = call.seconds};
      if (message)
        transfer.ranks = {group.ranks[index(call.from)], group.ranks[index(call.to)]};
      else
        transfer.ranks = group.ranks;
      std::set<int> hosts;
      for (const int member : transfer.ranks) hosts.insert(site_.host_of[index(member)]);
      transfer.hosts.assign(hosts.begin(), hosts.end());
      transfer.missing = static_cast<int>(transfer.ranks.size());
      transfers_.push_back(std::move(transfer));
    }
    ScriptTransfer& transfer = transfers_[index(found->second)];
    --transfer.missing;
    if (transfer.hosts.size() > 1) transfer.links[site_.host_of[index(rank)]] += call.link;
    const bool sender_alone = message && !call.waits && transfer.ranks[0] == rank;
    if (!transfer.runs && !transfer.over && (transfer.missing == 0 || sender_alone)) {
      transfer.runs = true;
      running_.push_back(found->second);
      engine_.begin({size() + found->second, transfer.seconds});
    }
    return found->second;
  }

  // Counts how many cores the ranks of each machine need, and how many calls use each host's link.
  void count() {
    std::ranges::fill(wanted_, 0);
    std::ranges::fill(on_link_, 0);
    std::ranges::fill(calls_, 0);
    for (int rank = 0; rank < size(); ++rank) works_[index(rank)] = computes(rank) ? 1 : 0;
    for (const int t : running_) {
      const ScriptTransfer& transfer = transfers_[index(t)];
      const bool is_far = transfer.hosts.size() > 1;
      for (const int host : transfer.hosts) on_link_[index(host)] += is_far ? 1 : 0;
      for (const int rank : transfer.ranks) {
        if (is_far)
          calls_[index(rank)] += transfer.on_cores();
        else
          works_[index(rank)] = 1;
      }
    }
    for (int rank = 0; rank < size(); ++rank)
      wanted_[index(site_.machine_of[index(rank)])] += std::min(1.0, works_[index(rank)] + calls_[index(rank)]);
  }

  // Returns the fraction of a core that a rank gets.
  double core_of(int rank) const { return std::min(1.0, site_.cores / wanted_[index(site_.machine_of[index(rank)])]); }
  // The speed of a rank's work, or of a rank's call within a host. The speed is relative to a rank that has its own core.
  double pace_of(int rank) const { return core_of(rank) / std::max(1.0, works_[index(rank)] + calls_[index(rank)]); }
  // The speed of a call to other hosts while the call needs the rank's core.
  double pace_of_call(int rank) const { return core_of(rank) / (works_[index(rank)] + std::max(1.0, calls_[index(rank)])); }

  // The speed of a transfer. At speed 1, the transfer takes exactly its predicted time, which already assumes that the
  // call's own ranks share cores.
  double speed_of(const ScriptTransfer& transfer) const {
    const bool is_far = transfer.hosts.size() > 1;
    double slowest = 1;
    for (const int rank : transfer.ranks) {
      const double pace = is_far ? pace_of_call(rank) : pace_of(rank);
      const int machine = site_.machine_of[index(rank)];
      const auto here = std::ranges::count_if(transfer.ranks, [&](int r) { return site_.machine_of[index(r)] == machine; });
      slowest = std::min(slowest, pace / std::min(1.0, site_.cores / static_cast<double>(here)));
    }
    if (!is_far) return slowest;
    int most = 1;
    for (const int host : transfer.hosts) most = std::max(most, on_link_[index(host)]);
    return 1 / ((1 - transfer.on_cores()) * most + transfer.on_cores() / slowest);
  }

  void share(std::vector<Activity>& activities) {
    count();
    for (Activity& activity : activities)
      activity.rate = activity.id < size() ? pace_of(activity.id) : speed_of(transfers_[index(activity.id - size())]);
  }

  void end_work(int rank) {
    RankState& state = ranks_[index(rank)];
    computes_[index(rank)] += engine_.now() - std::exchange(state.began, -1);
    ++state.next;
    go_on(rank);
  }
  void end_transfer(int t) {
    transfers_[index(t)].over = true;
    std::erase(running_, t);
    const std::vector<int> ranks = transfers_[index(t)].ranks;  // a copy, because ranks that go on add transfers
    for (const int rank : ranks)
      if (ranks_[index(rank)].waits_for == t) {
        ++ranks_[index(rank)].next;
        go_on(rank);
      }
  }

  const std::vector<const Script*>& scripts_;
  const prediction::Site& site_;
  const Speeds& speeds_;
  std::vector<RankState> ranks_;
  std::vector<double> computes_;
  std::map<std::pair<int, std::string>, const RankGroup*> groups_;
  std::map<std::tuple<const RankGroup*, std::string, int>, int> known_;
  std::vector<ScriptTransfer> transfers_;
  std::vector<int> running_, on_link_;  // running_: transfers that run. on_link_: number of calls on each host's link
  std::vector<double> wanted_;          // number of cores that the ranks of each machine need
  // Both lists have one entry per rank. An entry of `works_` is 1 if the rank computes or takes part in a call within its
  // host. An entry of `calls_` is the fraction of time in which calls to other hosts, at full speed, need the rank's core.
  std::vector<double> works_, calls_;
  Engine engine_;
};

}  // namespace

StepTime simulate(const std::vector<const Script*>& scripts, const std::vector<RankGroup>& groups,
                  const prediction::Site& site, const Speeds& speeds) {
  return Simulation(scripts, groups, site, speeds).run();
}

}  // namespace chorale
