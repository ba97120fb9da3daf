#include "parallel/prediction/system_call.hpp"

#include <algorithm>

#include "collectives/schedule/step_graph.hpp"
#include "parallel/prediction/stage_cost.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/max_min.hpp"

namespace chorale {
namespace {

// The links of a system. Each rank, each host and each leaf switch has two: out and in.
class SystemLinks {
 public:
  SystemLinks(const System& system, std::vector<int> host_of_rank)
      : network_(system.network),
        hosts_(std::move(host_of_rank)),
        first_host_(2 * static_cast<int>(hosts_.size())),
        capacities_(index(first_host_), system.host.link) {
    const int last = std::ranges::max(hosts_);
    if (last == 0) return;
    for (int host = 0; host <= last; ++host)
      capacities_.insert(capacities_.end(), 2,
                         crossing_rate(system, static_cast<int>(std::ranges::count(hosts_, host)), 1, false));
    first_switch_ = static_cast<int>(capacities_.size());
    if (network_.has_switches())
      capacities_.resize(capacities_.size() + 2 * index(network_.switch_of(last) + 1), network_.uplink());
  }

  const std::vector<double>& capacities() const { return capacities_; }
  bool crosses(int from, int to) const { return hosts_[index(from)] != hosts_[index(to)]; }
  // The links that a message occupies.
  std::vector<ResourceUse> route(int from, int to) const {
    std::vector<ResourceUse> links{{2 * from}, {2 * to + 1}};
    if (!crosses(from, to)) return links;
    const int source = hosts_[index(from)], target = hosts_[index(to)];
    links.insert(links.end(), {{first_host_ + 2 * source}, {first_host_ + 2 * target + 1}});
    const int own = network_.switch_of(source), other = network_.switch_of(target);
    if (own != other) links.insert(links.end(), {{first_switch_ + 2 * own}, {first_switch_ + 2 * other + 1}});
    return links;
  }

 private:
  const NetworkLinks& network_;
  std::vector<int> hosts_;  // indexed by rank
  int first_host_, first_switch_ = 0;
  std::vector<double> capacities_;
};

// The engine knows the messages by their numbers. It reports each twice: when its latency is over, then when its bytes are
// in.
class SystemCall {
 public:
  SystemCall(const std::vector<Schedule>& ranks, const std::vector<int>& hosts, std::int64_t element_bytes,
             const System& system)
      : element_(static_cast<double>(element_bytes)),
        system_(system),
        graph_(ranks),
        links_(system, hosts.empty() ? std::vector<int>(ranks.size()) : hosts),
        messages_(graph_.messages()),
        state_(messages_.size()),
        steps_(ranks.size()),
        engine_(max_min(links_.capacities())) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const Step& step : ranks[r].steps) steps_[r].push_back({static_cast<int>(step.after.size())});
    for (std::size_t m = 0; m < messages_.size(); ++m)
      for (Progress* step : {&sender(m), &receiver(m)}) step->messages.push_back(m);
  }

  double run() {
    for (std::size_t r = 0; r < steps_.size(); ++r)
      for (std::size_t s = 0; s < steps_[r].size(); ++s)
        if (graph_.ranks()[r].steps[s].after.empty()) post(r, s);
    engine_.run([this](int m) { ++state_[index(m)] == moves ? begin(index(m)) : arrive(index(m)); });
    for (const auto& steps : steps_)
      for (const Progress& step : steps) require(step.over, "a step of a schedule never ends");
    return engine_.now();
  }

 private:
  enum State { created, posted_once, posted, moves };
  struct Progress {
    int waits = 0;                           // number of steps that must complete before this step
    std::vector<std::size_t> messages = {};  // this step's messages that have not arrived
    bool over = false;
  };
  Progress& sender(std::size_t m) { return steps_[index(messages_[m].from)][index(messages_[m].send)]; }
  Progress& receiver(std::size_t m) { return steps_[index(messages_[m].to)][index(messages_[m].recv)]; }
  double latency(const Message& m) const {
    return links_.crosses(m.from, m.to) ? system_.network.latency : system_.host.latency;
  }

  void post(std::size_t r, std::size_t s) {
    if (steps_[r][s].messages.empty()) return end(r, s);
    for (const std::size_t m : steps_[r][s].messages)
      if (++state_[m] == posted) engine_.at(engine_.now() + latency(messages_[m]), static_cast<int>(m));
  }
  void begin(std::size_t m) {
    const auto [from, to, send, recv] = messages_[m];
    const std::int64_t count = graph_.ranks()[index(from)].steps[index(send)].src[0].count;
    engine_.begin({static_cast<int>(m), element_ * static_cast<double>(count), links_.route(from, to)});
  }
  void arrive(std::size_t m) {
    take(messages_[m].from, messages_[m].send, m);
    take(messages_[m].to, messages_[m].recv, m);
  }
  void take(int rank, int step, std::size_t message) {
    auto& left = steps_[index(rank)][index(step)].messages;
    std::erase(left, message);
    if (left.empty()) end(index(rank), index(step));
  }
  void end(std::size_t r, std::size_t s) {
    steps_[r][s].over = true;
    for (const int next : graph_.steps(r)[s].dependents)
      if (--steps_[r][index(next)].waits == 0) post(r, index(next));
  }

  double element_;
  const System& system_;
  StepGraph graph_;
  SystemLinks links_;
  std::vector<Message> messages_;
  std::vector<int> state_;  // a State for each message
  std::vector<std::vector<Progress>> steps_;
  Engine engine_;
};

}  // namespace

double seconds_of_call(const std::vector<Schedule>& ranks, const std::vector<int>& hosts, std::int64_t element_bytes,
                       const System& system) {
  return SystemCall(ranks, hosts, element_bytes, system).run();
}

}  // namespace chorale
