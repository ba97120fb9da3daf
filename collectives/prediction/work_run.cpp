// Runs a graph of work items in virtual time. Simultaneous events are handled in the order of their work items' numbers.
#include <algorithm>
#include <set>
#include <utility>

#include "collectives/prediction/work.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/engine.hpp"

namespace chorale::prediction {
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
        has_begun_(graph.works_.size(), false),
        latest_(graph.works_.size(), 0),
        machines_(index(most(graph.site_.machine_of) + 1)),
        out_(index(most(graph.site_.host_of) + 1), -graph.burst_seconds_),
        in_(out_) {
    for (auto& cores : machines_) cores.resize(index(graph.site_.cores));
    for (const auto& work : graph.works_) missing_.push_back(work.missing);
    for (std::size_t w = 0; w < missing_.size(); ++w)
      if (missing_[w] == 0) engine_.at(0, static_cast<int>(w));
  }

  // The engine reports each work item twice: when it can begin, and when it is over.
  double seconds() {
    std::size_t over = 0;
    engine_.run(
        [&](int work) {
          if (!std::exchange(has_begun_[index(work)], true)) return begin(work);
          ++over;
          end(work);
        },
        [&] { dispatch(); });
    require(over == missing_.size(), "{} of {} steps wait forever, so the schedule has no price", missing_.size() - over,
            missing_.size());
    return engine_.now();
  }

 private:
  struct Core {
    int rank = -1;  // the rank that ran here last
    bool is_busy = false;
  };

  void begin(int w) {
    const auto& work = graph_.works_[index(w)];
    if (work.to < 0) {
      if (ready_[index(work.rank)].empty() && !is_busy_[index(work.rank)]) waiting_.push_back(work.rank);
      ready_[index(work.rank)].insert(w);
      return;
    }
    double& out = out_[index(graph_.site_.host_of[index(work.rank)])];
    double& in = in_[index(graph_.site_.host_of[index(work.to)])];
    for (double* const link : {&out, &in}) *link = std::max(engine_.now() - graph_.burst_seconds_, *link) + work.seconds;
    engine_.at(std::max({engine_.now(), out, in}), w);
  }

  void end(int w) {
    const auto& work = graph_.works_[index(w)];
    for (const auto& [next, latency] : work.next) {
      double& latest = latest_[index(next)];
      latest = std::max(latest, engine_.now() + latency);
      if (--missing_[index(next)] == 0) engine_.at(latest, next);
    }
    if (work.to >= 0) return;
    core_of_[index(w)]->is_busy = false;
    is_busy_[index(work.rank)] = false;
    if (!ready_[index(work.rank)].empty()) waiting_.push_back(work.rank);
  }

  // Gives free cores to waiting ranks, in the order in which they began to wait.
  void dispatch() {
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
      engine_.at(engine_.now() + turn + graph_.works_[index(w)].seconds, w);
      return true;
    });
  }

  const WorkGraph& graph_;
  std::vector<int> missing_;
  std::vector<std::set<int>> ready_;  // indexed by rank
  std::vector<char> is_busy_;         // indexed by rank
  std::vector<int> waiting_;          // ranks that have work but no core
  std::vector<Core*> core_of_;        // indexed by work
  std::vector<char> has_begun_;       // indexed by work
  std::vector<double> latest_;        // indexed by work: when the last of its predecessors lets it begin, so far
  std::vector<std::vector<Core>> machines_;
  std::vector<double> out_, in_;  // indexed by host: the time when the link becomes free, minus the burst
  Engine engine_;
};

double WorkGraph::seconds() const { return WorkRun(*this).seconds(); }

}  // namespace chorale::prediction
