#include "parallel/prediction/executor.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <tuple>

#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/max_min.hpp"

namespace chorale {
namespace {

using Kind = StageCost::Act::Kind;

// A call may send only some bytes of a connection over the uplink of a leaf switch, but the parts of an activity are
// integers. So a connection that sends all its bytes over an uplink counts as this many parts.
constexpr int parts_of_connection = 1 << 20;

// Links 2k and 2k + 1 belong to hosts of kind k: out and in. After the links of all kinds of hosts come those of all kinds
// of leaf switches.
std::vector<double> capacities(const System& system, const RankClasses& ranks) {
  std::vector<double> all(2 * index(ranks.hosts), system.network.adapters * system.network.adapter);
  all.resize(all.size() + 2 * index(ranks.leaves), system.network.uplink() * parts_of_connection);
  return all;
}

// Properties of a recorded call of a class. The properties are the same in every execution of the call.
struct KnownCall {
  int channel = 0;  // the k-th calls of all classes in a channel are the same call
  int parties = 1;  // number of classes that must begin the call
  CallTime time;
  std::vector<ResourceUse> uses;  // how the call uses links between hosts
  std::string axis;
  double after = 0;
  bool is_message = false;
  std::int64_t sent = 0, copied = 0;  // bytes that a rank of this class sends; bytes that it copies
};

struct Transfer {
  const KnownCall* call = nullptr;
  int missing = 0;
  bool moves = false;  // whether its bytes are on the links
  double over = forever;
  std::vector<int> waiting = {};  // classes that wait for the transfer
};

struct ClassState {
  std::vector<const StageCost::Part*> parts;  // in the order of execution
  std::vector<PipelineAction> actions;        // the actions of `parts`, except those of the first and the last part
  std::size_t part = 0, act = 0;
  double accelerator = 0, host = 0;  // times until which the accelerator and the host thread are busy
  double began = -1;                 // time at which the part's first kernel began; −1 if no kernel has begun
  std::vector<int> transfers;        // the newest execution of each recorded call
  std::map<int, int> counted;        // number of executions so far in each channel
  bool done = false;
};

// The engine knows the classes, and after them the transfers, by their numbers. A class is reported when it continues. A
// transfer is reported when its latency is over, and when its bytes are in.
class Executor {
 public:
  explicit Executor(const Execution& e)
      : e_(e), states_(e.costs.size()), calls_(e.costs.size()), engine_(max_min(capacities(e.system, e.ranks))) {
    result_.classes.resize(states_.size());
    result_.timeline.stages = e.schedule.stages;
    result_.timeline.chunks = e.schedule.chunks;
    for (std::size_t c = 0; c < states_.size(); ++c) prepare(c);
  }

  ExecutedStep run() {
    for (std::size_t c = 0; c < states_.size(); ++c) engine_.at(0, static_cast<int>(c));
    engine_.run([this](int id) { index(id) < states_.size() ? go_on(index(id)) : advance(id - classes()); });
    for (std::size_t c = 0; c < states_.size(); ++c) {
      require(states_[c].done, "rank {} waits forever in the simulation of a step", e_.ranks.classes[c].rank);
      result_.classes[c].seconds = states_[c].accelerator;
      result_.seconds = std::max(result_.seconds, states_[c].accelerator);
    }
    return std::move(result_);
  }

 private:
  void prepare(std::size_t c) {
    ClassState& state = states_[c];
    const StageCost& cost = *e_.costs[c];
    const auto add = [&](const StageCost::Part& part) { state.parts.push_back(&part); };
    add(cost.parts.front());
    for (const PipelineAction& action : e_.schedule.actions[index(e_.stages[c])]) {
      add(cost.of(action, e_.schedule.micro_batches));
      state.actions.push_back(action);
    }
    add(cost.rest());
    state.transfers.assign(cost.calls.size(), -1);
    for (std::size_t i = 0; i < cost.calls.size(); ++i) calls_[c].push_back(known(c, cost.calls[i], cost.after[i]));
  }

  // Copies to host memory run one after the other, and so do copies from host memory, and updates by the host. They share no
  // links with other calls.
  KnownCall known_copy(std::size_t c, const Script::Call& call) {
    const int direction = -1 - static_cast<int>(call.copy);
    KnownCall known{.time = time_of_call(call, e_.system, 1), .axis = call.group};
    if (call.copy != Script::Call::Copy::update) known.copied = call.volume.vector;
    known.channel = channels_.try_emplace({c, direction, direction}, static_cast<int>(channels_.size())).first->second;
    return known;
  }

  KnownCall known(std::size_t c, const Script::Call& call, double after) {
    if (call.copy != Script::Call::Copy::no) return known_copy(c, call);
    const RankClass& own = e_.ranks.classes[c];
    const RankClass::Group& group = own.groups.at(call.group);
    const bool message = call.from >= 0;
    KnownCall known{.time = time_of_call(call, e_.system, group.beside),
                    .axis = call.group,
                    .after = after,
                    .is_message = message,
                    .sent = message && call.from != e_.stages[c] ? 0 : call.volume.sent};
    known.channel =
        channels_.try_emplace({group.instance, call.from, call.to}, static_cast<int>(channels_.size())).first->second;
    if (message) {
      known.parties = 2;
      known.uses = uses_of_message(call, group.members, known.time);
    } else {
      known.parties = static_cast<int>(group.classes.size());
      known.uses = uses_of_collective(call, group.classes, known.time);
    }
    return known;
  }
  const RankClass& rank_class(int number) const { return e_.ranks.classes[index(number)]; }
  // The share of each connection's bytes that the uplink of a leaf switch carries, counted in parts_of_connection, times the
  // number of connections.
  static std::int64_t parts_on_uplink(const CallTime& time) {
    return std::llround(time.switch_crossing / time.crossing * parts_of_connection);
  }
  int link_of_leaf(const RankClass& one) const { return 2 * (e_.ranks.hosts + one.leaf); }

  std::vector<ResourceUse> uses_of_message(const Script::Call& call, const std::vector<int>& members, const CallTime& time) {
    if (time.crossing == 0) return {};
    const RankClass& from = rank_class(members[index(call.from)]);
    const RankClass& to = rank_class(members[index(call.to)]);
    const RankClass::Group &out = from.groups.at(call.group), &in = to.groups.at(call.group);
    std::vector<ResourceUse> uses{{2 * from.host, out.senders}, {2 * to.host + 1, in.senders}};
    if (time.switch_crossing == 0) return uses;
    uses.push_back({link_of_leaf(from), out.leaf_senders * parts_on_uplink(time)});
    uses.push_back({link_of_leaf(to) + 1, in.leaf_senders * parts_on_uplink(time)});
    return uses;
  }
  // Every host of the group has a connection in each direction. Every leaf switch has the connections of the leaf switch of
  // this class.
  std::vector<ResourceUse> uses_of_collective(const Script::Call& call, const std::vector<int>& classes,
                                              const CallTime& time) {
    std::vector<ResourceUse> uses;
    std::set<int> links;
    const auto add = [&](int link, std::int64_t parts) {
      if (!links.insert(link).second) return;
      uses.push_back({link, parts});
      uses.push_back({link + 1, parts});
    };
    for (const int member : classes) {
      const RankClass& theirs = rank_class(member);
      const RankClass::Group& group = theirs.groups.at(call.group);
      if (time.crossing > 0) add(2 * theirs.host, group.on_host);
      if (time.switch_crossing > 0) add(link_of_leaf(theirs), group.under_leaf * parts_on_uplink(time));
    }
    return uses;
  }

  // Performs the acts of a class until the class must wait, or until its next act begins later than now.
  void go_on(std::size_t c) {
    ClassState& state = states_[c];
    while (!state.done) {
      const StageCost::Part& part = *state.parts[state.part];
      if (state.act == part.acts.size()) {
        end_part(c);
        continue;
      }
      const StageCost::Act& act = part.acts[state.act];
      if (act.kind == Kind::work) {
        work(c, act);
      } else if (act.kind == Kind::begin) {
        if (state.accelerator > engine_.now()) return engine_.at(state.accelerator, static_cast<int>(c));
        state.transfers[index(act.call)] = begin(c, act.call);
      } else if (!wait(c, act.call)) {
        return;
      }
      ++state.act;
    }
  }

  void end_part(std::size_t c) {
    ClassState& state = states_[c];
    if (state.part > 0 && state.part <= state.actions.size() && is_first_of_stage(c))
      result_.timeline.events.push_back({e_.stages[c], state.actions[state.part - 1],
                                         state.began < 0 ? state.accelerator : state.began, state.accelerator});
    state.began = -1;
    state.act = 0;
    if (++state.part == state.parts.size()) state.done = true;
  }
  bool is_first_of_stage(std::size_t c) const {
    return std::ranges::find(e_.stages, e_.stages[c]) - e_.stages.begin() == static_cast<std::ptrdiff_t>(c);
  }

  void work(std::size_t c, const StageCost::Act& act) {
    ClassState& state = states_[c];
    ClassTime& spent = result_.classes[c];
    const double before = state.accelerator;
    if (state.began < 0) state.began = std::max(state.accelerator, state.host);
    state.accelerator = std::max(state.accelerator, state.host) + act.gpu();
    state.host += act.host_seconds;
    state.accelerator = std::max(state.accelerator, state.host);
    spent.kernels += act.time;
    spent.calls += act.calls;
    spent.sent += act.sent;
    spent.launching += state.accelerator - before - act.gpu();
  }

  int begin(std::size_t c, int number) {
    const KnownCall& call = calls_[c][index(number)];
    result_.classes[c].sent += call.sent;
    result_.classes[c].copied += call.copied;
    const int count = states_[c].counted[call.channel]++;
    const auto [found, is_new] = started_.try_emplace({call.channel, count}, static_cast<int>(transfers_.size()));
    if (is_new) transfers_.push_back({&call, call.parties});
    const int which = found->second;
    // Ranks on unequal hosts send unequal numbers of bytes. A transfer is complete when its slowest rank is done.
    const auto longer = [](const CallTime& a, const CallTime& b) {
      return std::pair(a.total(), a.switch_crossing) > std::pair(b.total(), b.switch_crossing);
    };
    if (longer(call.time, transfers_[index(which)].call->time)) transfers_[index(which)].call = &call;
    if (--transfers_[index(which)].missing > 0) return which;
    started_.erase(found);
    if (call.is_message) {
      start(which);
      return which;
    }
    std::deque<int>& line = lines_[call.channel];
    line.push_back(which);
    if (line.size() == 1) start(which);
    return which;
  }
  void start(int which) {
    const KnownCall& call = *transfers_[index(which)].call;
    engine_.at(engine_.now() + call.time.latency + (call.uses.empty() ? call.time.moves : 0), classes() + which);
  }

  bool wait(std::size_t c, int number) {
    ClassState& state = states_[c];
    const int which = state.transfers[index(number)];
    if (which < 0) return true;  // the call began in a pass that does not occur in this step
    Transfer& transfer = transfers_[index(which)];
    if (transfer.over == forever) {
      if (std::ranges::count(transfer.waiting, static_cast<int>(c)) == 0) transfer.waiting.push_back(static_cast<int>(c));
      return false;
    }
    const KnownCall& call = calls_[c][index(number)];
    const double until = std::max(state.accelerator, transfer.over + call.after);
    result_.classes[c].waits[call.axis] += until - state.accelerator;
    state.accelerator = until;
    if (call.after > 0) state.host = std::max(state.host, until);  // the program waits for the accelerator
    return true;
  }

  void advance(int which) {
    const KnownCall& call = *transfers_[index(which)].call;
    if (call.uses.empty() || std::exchange(transfers_[index(which)].moves, true)) return over(which);
    engine_.begin({classes() + which, call.time.crossing, call.uses, call.time.crossing / call.time.moves});
  }
  void over(int which) {
    transfers_[index(which)].over = engine_.now();
    if (const KnownCall& call = *transfers_[index(which)].call; !call.is_message) {
      std::deque<int>& line = lines_[call.channel];
      line.pop_front();
      if (!line.empty()) start(line.front());
    }
    for (const int c : transfers_[index(which)].waiting) engine_.at(engine_.now(), c);
  }

  int classes() const { return static_cast<int>(states_.size()); }

  const Execution& e_;
  std::vector<ClassState> states_;
  std::vector<std::vector<KnownCall>> calls_;  // indexed by class and recorded call
  std::map<std::tuple<std::size_t, int, int>, int> channels_;
  std::map<int, std::deque<int>> lines_;        // key: the channel. Collectives of a group run one after the other
  std::map<std::pair<int, int>, int> started_;  // calls that some classes must still begin; the key is (channel, number)
  std::vector<Transfer> transfers_;
  Engine engine_;
  ExecutedStep result_;
};

}  // namespace

ExecutedStep execute(const Execution& execution) { return Executor(execution).run(); }

}  // namespace chorale
