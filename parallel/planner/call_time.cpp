#include "parallel/planner/call_time.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "collectives/analysis/rounds.hpp"
#include "parallel/planner/links.hpp"
#include "parallel/planner/stage_cost.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
class CallExecutor {
 public:
  CallExecutor(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system)
      : ranks_(ranks),
        element_(static_cast<double>(element_bytes)),
        system_(system),
        hosts_(ranks.front().problem().hosts),
        messages_(match_messages(ranks)),
        posted_(messages_.size(), 0),
        steps_(ranks.size()) {
    if (hosts_.empty()) hosts_.assign(ranks.size(), 0);
    for (std::size_t r = 0; r < ranks.size(); ++r) prepare(r);
    for (std::size_t m = 0; m < messages_.size(); ++m)
      for (Progress* step : {&sender(m), &receiver(m)}) step->messages.push_back(m);
    make_links();
  }

  double run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < steps_[r].size(); ++s)
        if (ranks_[r].steps[s].after.empty()) post(r, s);
    while (true) {
      const double start = starts_.empty() ? infinity : starts_.top().first, arrival = next_arrival();
      if (start == infinity && arrival == infinity) break;
      pass_time(std::min(start, arrival));
      if (arrival <= start) arrive();
      while (!starts_.empty() && starts_.top().first <= now_) {
        begin(starts_.top().second);
        starts_.pop();
      }
      share(flows_, capacities_);
    }
    for (const auto& steps : steps_)
      for (const Progress& step : steps) require(step.over, "a step of a schedule never ends");
    return now_;
  }

 private:
  struct Progress {
    std::size_t missing = 0;            // number of steps that must complete before this step
    std::vector<std::size_t> messages;  // this step's messages that have not arrived
    std::vector<std::size_t> next;      // the rank's steps that wait for this step
    bool over = false;
  };
  Progress& sender(std::size_t m) { return steps_[index(messages_[m].from)][index(messages_[m].send)]; }
  Progress& receiver(std::size_t m) { return steps_[index(messages_[m].to)][index(messages_[m].recv)]; }

  void prepare(std::size_t r) {
    steps_[r].resize(ranks_[r].steps.size());
    for (std::size_t s = 0; s < steps_[r].size(); ++s) {
      steps_[r][s].missing = ranks_[r].steps[s].after.size();
      for (const int before : ranks_[r].steps[s].after) steps_[r][index(before)].next.push_back(s);
    }
  }
  // Links 2r and 2r + 1 belong to rank r. After the links of all ranks come the links of the hosts.
  void make_links() {
    capacities_.assign(2 * ranks_.size(), system_.host.link);
    for (int host = 0; host <= std::ranges::max(hosts_); ++host) {
      const auto ranks = static_cast<int>(std::ranges::count(hosts_, host));
      const double rate = std::ranges::max(hosts_) == 0 ? infinity : crossing_rate(system_, ranks, 1, false);
      capacities_.insert(capacities_.end(), 2, rate);
    }
  }

  void post(std::size_t r, std::size_t s) {
    if (steps_[r][s].messages.empty()) return end(r, s);
    for (const std::size_t m : steps_[r][s].messages)
      if (++posted_[m] == 2) starts_.emplace(now_ + (crosses(m) ? system_.network.latency : system_.host.latency), m);
  }
  bool crosses(std::size_t m) const { return hosts_[index(messages_[m].from)] != hosts_[index(messages_[m].to)]; }

  void begin(std::size_t m) {
    const auto [from, to, send, recv] = messages_[m];
    LinkFlow flow{.transfer = static_cast<int>(m), .uses = {{2 * from}, {2 * to + 1}}, .limit = infinity};
    flow.left = element_ * static_cast<double>(ranks_[index(from)].steps[index(send)].src[0].count);
    const int first = 2 * static_cast<int>(ranks_.size());
    if (crosses(m)) {
      flow.uses.push_back({first + 2 * hosts_[index(from)]});
      flow.uses.push_back({first + 2 * hosts_[index(to)] + 1});
    }
    flows_.push_back(std::move(flow));
  }

  double next_arrival() const {
    double first = infinity;
    for (const LinkFlow& flow : flows_) first = std::min(first, now_ + flow.left / flow.rate);
    return first;
  }
  void pass_time(double until) {
    arrived_.clear();
    for (LinkFlow& flow : flows_) {
      if (now_ + flow.left / flow.rate <= until) arrived_.push_back(static_cast<std::size_t>(flow.transfer));
      flow.left = std::max(0.0, flow.left - flow.rate * (until - now_));
    }
    now_ = until;
  }
  void arrive() {
    std::ranges::sort(arrived_);
    std::erase_if(flows_, [&](const LinkFlow& flow) {
      return std::ranges::binary_search(arrived_, static_cast<std::size_t>(flow.transfer));
    });
    for (const std::size_t m : arrived_) {
      take(messages_[m].from, messages_[m].send, m);
      take(messages_[m].to, messages_[m].recv, m);
    }
  }
  void take(int rank, int step, std::size_t message) {
    auto& left = steps_[index(rank)][index(step)].messages;
    std::erase(left, message);
    if (left.empty()) end(index(rank), index(step));
  }
  void end(std::size_t r, std::size_t s) {
    steps_[r][s].over = true;
    for (const std::size_t next : steps_[r][s].next)
      if (--steps_[r][next].missing == 0) post(r, next);
  }

  const std::vector<Schedule>& ranks_;
  double element_;
  const System& system_;
  std::vector<int> hosts_;
  std::vector<Message> messages_;
  std::vector<int> posted_;  // for each message, the number of its ends that have been posted
  std::vector<std::vector<Progress>> steps_;
  std::vector<double> capacities_;
  std::vector<LinkFlow> flows_;
  std::vector<std::size_t> arrived_;  // messages that have arrived
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>> starts_;
  double now_ = 0;
};

}  // namespace

double seconds_of_call(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system) {
  return CallExecutor(ranks, element_bytes, system).run();
}

}  // namespace chorale
