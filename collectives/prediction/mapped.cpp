#include "collectives/backends/mapped/program.hpp"
#include "collectives/prediction/call_graph.hpp"
#include "collectives/prediction/prediction.hpp"
#include "src/base/index.hpp"

namespace chorale::prediction {
namespace {

class MappedCall {
 public:
  MappedCall(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& prices,
             const WorkBeside& beside)
      : prices_(prices),
        element_(static_cast<double>(element_bytes)),
        eager_(mapped::is_eager(ranks, element_bytes)),
        graph_(ranks, element_bytes, site, prices) {
    const StepGraph steps(ranks);
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r)
      programs_.push_back(mapped::compile(steps, r, eager_ ? mapped::cells_for(element_bytes) : mapped::StagingRule{}));
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      begins_.push_back(graph_.add(r, prices.call));
      works_.emplace_back();
      for (const mapped::Action& action : programs_[index(r)].actions) add(r, action);
      ends_.push_back(graph_.add(r, 0));
    }
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) connect(r);
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) graph_.add(r, begins_[index(r)], beside);
  }

  double seconds() { return graph_.seconds(); }

 private:
  void add(int r, const mapped::Action& action) {
    const double bytes = static_cast<double>(action.count) * element_;
    double seconds = prices_.step;
    for (const mapped::Spot& from : action.from)
      if (eager_ && from.staged >= 0 && action.kind != Kind::send) seconds += bytes * prices_.copy;
    if (eager_) seconds += static_cast<double>(action.fill_count) * element_ * prices_.copy;
    if (action.kind != Kind::send && !action.written)
      seconds += bytes * static_cast<double>(action.from.size() - 1) * prices_.sum;
    const int work = graph_.add(r, seconds);
    works_.back().push_back(work);
    if (action.written) return;
    const bool reads = action.kind != Kind::send || !action.also_into.empty() || eager_;
    const bool adds = action.kind == Kind::recv_reduce || action.kind == Kind::reduce;
    for (const mapped::Spot& from : action.from)
      if (reads && (!eager_ || from.staged < 0 || from.rank == r))
        graph_.accesses(work, from.rank, range(from, action), adds ? Access::add : Access::load);
    if (action.kind != Kind::send) graph_.accesses(work, r, range(action.into, action), Access::store);
    for (const mapped::Spot& also : action.also_into) graph_.accesses(work, also.rank, range(also, action), Access::store);
  }

  static Range range(const mapped::Spot& spot, const mapped::Action& action) {
    return {spot.place, spot.first, action.count};
  }

  void connect(int r) {
    const auto& program = programs_[index(r)];
    for (std::size_t a = 0; a < program.actions.size(); ++a) {
      const mapped::Action& action = program.actions[a];
      const int work = works_[index(r)][a];
      graph_.after(begins_[index(r)], work);
      graph_.after(work, ends_[index(r)]);
      for (const mapped::Event& event : action.events) follow(event, work);
      for (const mapped::Spot& spot : action.also_into) graph_.after(begins_[index(spot.rank)], work, prices_.latency);
      if (action.written) continue;
      for (const int before : action.after) graph_.after(works_[index(r)][index(before)], work);
      for (const mapped::Event& event : action.readers)
        if (event.written == 0) follow(event, work);
    }
    for (const mapped::Event& event : program.at_the_end) follow(event, ends_[index(r)]);
  }

  void follow(const mapped::Event& event, int work) {
    graph_.after(works_[index(event.rank)][index(event.step)], work, prices_.latency);
  }

  const Prices& prices_;
  double element_;
  bool eager_;  // whether data pass through the cells of flag pages
  CallGraph graph_;
  std::vector<mapped::Program> programs_;
  std::vector<int> begins_, ends_;
  std::vector<std::vector<int>> works_;  // indexed by rank and action
};

}  // namespace

double mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& prices,
              const WorkBeside& beside) {
  return MappedCall(ranks, element_bytes, site, prices, beside).seconds();
}

}  // namespace chorale::prediction
