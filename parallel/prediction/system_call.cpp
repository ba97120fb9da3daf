#include "parallel/prediction/system_call.hpp"

#include <algorithm>

#include "collectives/schedule/step_graph.hpp"
#include "parallel/prediction/stage_cost.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/max_min.hpp"

namespace chorale {
namespace {

// The engine knows the messages by their numbers. It reports each twice: when its latency is over, then when its bytes are
// in.
class SystemCall {
 public:
  SystemCall(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system)
      : element_(static_cast<double>(element_bytes)),
        system_(system),
        graph_(ranks),
        hosts_(ranks.front().problem().hosts),
        messages_(graph_.messages()),
        state_(messages_.size()),
        steps_(ranks.size()) {
    if (hosts_.empty()) hosts_.assign(ranks.size(), 0);
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const Step& step : ranks[r].steps) steps_[r].push_back({static_cast<int>(step.after.size())});
    for (std::size_t m = 0; m < messages_.size(); ++m)
      for (Progress* step : {&sender(m), &receiver(m)}) step->messages.push_back(m);
    engine_ = Engine(max_min(capacities()));
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
  bool crosses(std::size_t m) const { return hosts_[index(messages_[m].from)] != hosts_[index(messages_[m].to)]; }

  // Links 2r and 2r + 1 belong to rank r. After the links of all ranks come the links of the hosts.
  std::vector<double> capacities() const {
    std::vector<double> all(2 * steps_.size(), system_.host.link);
    for (int host = 0; host <= std::ranges::max(hosts_); ++host) {
      const auto ranks = static_cast<int>(std::ranges::count(hosts_, host));
      all.insert(all.end(), 2, std::ranges::max(hosts_) == 0 ? forever : crossing_rate(system_, ranks, 1, false));
    }
    return all;
  }

  void post(std::size_t r, std::size_t s) {
    if (steps_[r][s].messages.empty()) return end(r, s);
    for (const std::size_t m : steps_[r][s].messages)
      if (++state_[m] == posted)
        engine_.at(engine_.now() + (crosses(m) ? system_.network.latency : system_.host.latency), static_cast<int>(m));
  }
  void begin(std::size_t m) {
    const auto [from, to, send, recv] = messages_[m];
    const std::int64_t count = graph_.ranks()[index(from)].steps[index(send)].src[0].count;
    Activity bytes{static_cast<int>(m), element_ * static_cast<double>(count), {{2 * from}, {2 * to + 1}}};
    const int first = 2 * static_cast<int>(steps_.size());
    if (crosses(m))
      for (const int link : {2 * hosts_[index(from)], 2 * hosts_[index(to)] + 1}) bytes.uses.push_back({first + link});
    engine_.begin(std::move(bytes));
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
  std::vector<int> hosts_;
  std::vector<Message> messages_;
  std::vector<int> state_;  // a State for each message
  std::vector<std::vector<Progress>> steps_;
  Engine engine_;
};

}  // namespace

double seconds_of_call(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system) {
  return SystemCall(ranks, element_bytes, system).run();
}

}  // namespace chorale
