// Runs a graph of work items in virtual time. Simultaneous events are handled in the order of their work items' numbers.
#include <algorithm>
#include <queue>
#include <set>
#include <utility>

#include "collectives/forecast/work.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale::forecast {
namespace {

int most(const std::vector<int>& numbers) { return numbers.empty() ? -1 : *std::ranges::max_element(numbers); }

}  // namespace

class WorkRun {
 public:
  explicit WorkRun(const WorkGraph& graph)
      : graph_(graph),
        ready_(graph.site_.host_of.size()),
        is_busy_(graph.site_.host_of.size(), false),
        core_of_(graph.works_.size(), nullptr),
        machines_(index(most(graph.site_.machine_of) + 1)),
        out_(index(most(graph.site_.host_of) + 1), -graph.burst_seconds_),
        in_(out_) {
    for (auto& cores : machines_) cores.resize(index(graph.site_.cores));
    for (const auto& work : graph.works_) missing_.push_back(work.missing);
    for (std::size_t w = 0; w < missing_.size(); ++w)
      if (missing_[w] == 0) events_.push({0, static_cast<int>(w), false});
  }

  double seconds() {
    double now = 0;
    std::size_t over = 0;
    while (!events_.empty()) {
      now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.is_over) {
          ++over;
          end(event);
        } else
          begin(event);
      }
      dispatch(now);
    }
    require(over == missing_.size(), "{} of {} steps wait forever, so the schedule has no price", missing_.size() - over,
            missing_.size());
    return now;
  }

 private:
  struct Event {
    double time;
    int work;
    bool is_over;
    bool operator<(const Event& other) const { return std::pair(time, work) > std::pair(other.time, other.work); }
  };
  struct Core {
    int rank = -1;  // the rank that ran here last
    bool is_busy = false;
  };

  void begin(const Event& event) {
    const auto& work = graph_.works_[index(event.work)];
    if (work.to < 0) {
      if (ready_[index(work.rank)].empty() && !is_busy_[index(work.rank)]) waiting_.push_back(work.rank);
      ready_[index(work.rank)].insert(event.work);
      return;
    }
    double& out = out_[index(graph_.site_.host_of[index(work.rank)])];
    double& in = in_[index(graph_.site_.host_of[index(work.to)])];
    for (double* const link : {&out, &in}) *link = std::max(event.time - graph_.burst_seconds_, *link) + work.seconds;
    events_.push({std::max({event.time, out, in}), event.work, true});
  }

  void end(const Event& event) {
    const auto& work = graph_.works_[index(event.work)];
    for (const auto& [next, latency] : work.next)
      if (double& at = latest(next) = std::max(latest(next), event.time + latency); --missing_[index(next)] == 0)
        events_.push({at, next, false});
    if (work.to >= 0) return;
    core_of_[index(event.work)]->is_busy = false;
    is_busy_[index(work.rank)] = false;
    if (!ready_[index(work.rank)].empty()) waiting_.push_back(work.rank);
  }

  // Gives free cores to waiting ranks, in the order in which they began to wait.
  void dispatch(double now) {
    std::erase_if(waiting_, [&](int rank) {
      auto& cores = machines_[index(graph_.site_.machine_of[index(rank)])];
      Core* best = nullptr;
      for (Core& core : cores)
        if (!core.is_busy && (!best || core.rank == rank || (core.rank < 0 && best->rank != rank))) best = &core;
      if (!best) return false;
      const int w = *ready_[index(rank)].begin();
      ready_[index(rank)].erase(ready_[index(rank)].begin());
      const double turn = best->rank >= 0 && best->rank != rank ? graph_.switch_seconds_ : 0;
      *best = {rank, true};
      is_busy_[index(rank)] = true;
      core_of_[index(w)] = best;
      events_.push({now + turn + graph_.works_[index(w)].seconds, w, true});
      return true;
    });
  }

  double& latest(int work) {
    if (latest_.empty()) latest_.resize(missing_.size(), 0);
    return latest_[index(work)];
  }

  const WorkGraph& graph_;
  std::vector<int> missing_;
  std::vector<double> latest_;
  std::vector<std::set<int>> ready_;  // indexed by rank
  std::vector<char> is_busy_;         // indexed by rank
  std::vector<int> waiting_;          // ranks that have work but no core
  std::vector<Core*> core_of_;        // indexed by work
  std::vector<std::vector<Core>> machines_;
  std::vector<double> out_, in_;  // indexed by host: the time when the link becomes free, minus the burst
  std::priority_queue<Event> events_;
};

double WorkGraph::seconds() const { return WorkRun(*this).seconds(); }

}  // namespace chorale::forecast
