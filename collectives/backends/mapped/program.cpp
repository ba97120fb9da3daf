#include "collectives/backends/mapped/program.hpp"

#include <algorithm>

#include "collectives/backends/mapped/flag_page.hpp"
#include "collectives/backends/mapped/stage_layout.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale::mapped {
namespace {

bool receives(const Step& step) { return step.kind == Kind::recv || step.kind == Kind::recv_reduce; }

class Compiler {
 public:
  Compiler(const StepGraph& graph, int rank, StagingRule staging)
      : graph_(graph), ranks_(graph.ranks()), rank_(rank), eager_(staging.eager) {
    for (const Schedule& schedule : ranks_) stages_.emplace_back(schedule, staging);
    program_.scratch_count = schedule().scratch_count();
    program_.lines = stages_[index(rank)].lines;
    program_.staged_elements = staging.most_elements;
  }

  Program run() {
    const auto& steps = schedule().steps;
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) program_.actions.push_back(action(s));
    if (eager_)
      sum_into_targets();
    else
      merge_sends();
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) finish(s);
    return std::move(program_);
  }

 private:
  const Schedule& schedule() const { return ranks_[index(rank_)]; }
  const Step& step(int rank, int s) const { return ranks_[index(rank)].steps[index(s)]; }

  // The messages that a step sends or receives.
  std::vector<Message> messages(int rank, int s, bool sent) const {
    std::vector<Message> all;
    if ((step(rank, s).kind == Kind::send) != sent) return all;
    for (const StepGraph::Meeting& other : graph_.meetings(index(rank), index(s))) {
      require(other.rank >= 0 || sent, "rank {} receives more messages than it is sent; {}", rank,
              at(ranks_[index(rank)], index(s)));
      if (other.rank >= 0)
        all.push_back(sent ? Message{rank, other.rank, s, other.step} : Message{other.rank, rank, other.step, s});
    }
    return all;
  }
  std::vector<Message> outgoing(int rank, int s) const { return messages(rank, s, true); }
  std::vector<Message> incoming(int rank, int s) const { return messages(rank, s, false); }

  Spot own(const Range& range) const { return {rank_, range.place, range.first}; }

  Spot sent(const Message& message) const {
    const Range& range = step(message.from, message.send).src[0];
    return {message.from, range.place, range.first, stages_[index(message.from)].messages[index(message.send)].at};
  }

  Action action(int s) {
    const Step& step = schedule().steps[index(s)];
    Action action{step.kind, step.kind == Kind::send ? step.src[0].count : step.dst.count, own(step.dst)};
    action.after = step.after;
    for (const Range& range : step.src) action.from.push_back(own(range));
    if (step.kind == Kind::send) {
      const StageLayout::Message& staged = stages_[index(rank_)].messages[index(s)];
      action.from[0].staged = staged.at;
      action.fill = own(staged.fill);
      action.fill.staged = staged.fill_at;
      action.fill_count = staged.fill.count;
    }
    for (const Message& message : incoming(rank_, s)) {
      action.events.push_back({message.from, message.send});
      action.from.push_back(sent(message));
    }
    if (step.kind == Kind::recv_reduce)  // sorts all addends by rank, including this rank's addend
      std::sort(action.from.begin(), action.from.end(), [](const Spot& a, const Spot& b) { return a.rank < b.rank; });
    return action;
  }

  // Whether the sender may write to the receiver's target while step `maker` runs. The step `maker` is the recv_reduce that
  // produces the sent data, or −1 if there is none.
  bool can_be_written(const Message& message, int maker) const {
    const Step& sender = step(message.from, message.send);
    const Step& receiver = step(message.to, message.recv);
    if (receiver.kind != Kind::recv || receiver.dst.place != Place::output) return false;
    if (receiver.after.empty()) return true;
    if (maker < 0) return false;
    const Problem& problem = ranks_[index(message.to)].problem();
    const auto& made_from = incoming(message.from, maker);
    // Earlier steps of the receiver could access the target. Writing is safe if only the maker still reads the target,
    // because the maker reads each element before it writes that element.
    return std::all_of(receiver.after.begin(), receiver.after.end(), [&](int before) {
      const Step& other = step(message.to, before);
      const auto& readers = outgoing(message.to, before);
      const bool same_place = other.kind == Kind::send && same_start(problem, other.src[0], receiver.dst);
      return same_place && readers.size() == 1 && sender.src[0].count == other.src[0].count &&
             std::any_of(made_from.begin(), made_from.end(),
                         [&](const Message& m) { return m.from == message.to && m.send == before; });
    });
  }

  // If a sum is only copied on, it is written to the target of the copy at once. A schedule sums into scratch because the
  // target is being sent. If the data of sends are staged, the target is free as soon as the sends are done.
  void sum_into_targets() {
    auto& actions = program_.actions;
    for (Action& copy : actions)
      for (Action& sum : actions) {
        const bool adds = sum.kind == Kind::recv_reduce || sum.kind == Kind::reduce;
        if (copy.kind != Kind::copy || !adds || !is_only_use(sum, copy)) continue;
        const int nth = static_cast<int>(&sum - actions.data());
        if (std::any_of(copy.after.begin(), copy.after.end(), [&](int before) { return before > nth; })) continue;
        for (const int before : copy.after)
          if (before != nth) sum.after.push_back(before);
        sum.into = copy.into;
        copy.count = 0;
      }
  }

  // Whether `copy` copies the result of `sum`, no other action uses this part of the scratch buffer, and the sum can be
  // computed in the target.
  bool is_only_use(const Action& sum, const Action& copy) const {
    const Problem& problem = schedule().problem();
    const auto range = [](const Spot& spot, const Action& of) { return Range{spot.place, spot.first, of.count}; };
    const Range made = range(sum.into, sum), target = range(copy.into, copy);
    const bool same = copy.from[0].place == made.place && copy.from[0].first == made.first && copy.count == made.count;
    if (made.place != Place::scratch || made.count == 0 || !same) return false;
    for (const Action& other : program_.actions) {
      if (&other == &copy) continue;
      for (const Spot& from : other.from) {
        if (from.rank != rank_) continue;
        if (overlap(problem, range(from, other), made)) return false;
        if (&other == &sum && overlap(problem, range(from, sum), target) && !same_start(problem, range(from, sum), target))
          return false;
      }
      if (&other != &sum && other.kind != Kind::send && overlap(problem, range(other.into, other), made)) return false;
    }
    return true;
  }

  // Returns the recv_reduce whose complete result this send forwards; −1 if there is none.
  int maker_of(int rank, int s) const {
    const Step& send = step(rank, s);
    if (send.after.size() != 1) return -1;
    const Step& maker = step(rank, send.after[0]);
    const bool same = maker.kind == Kind::recv_reduce && maker.dst.place == send.src[0].place &&
                      maker.dst.first == send.src[0].first && maker.dst.count == send.src[0].count;
    return same ? send.after[0] : -1;
  }

  bool is_written(const Message& message) const {
    const int maker = maker_of(message.from, message.send);
    const bool wanted = maker >= 0 || step(message.from, message.send).put;
    return !eager_ && wanted && can_be_written(message, maker);
  }

  void merge_sends() {
    for (int s = 0; s < static_cast<int>(program_.actions.size()); ++s) {
      Action& action = program_.actions[index(s)];
      for (const Message& message : outgoing(rank_, s))
        if (is_written(message)) {
          const Range& range = step(message.to, message.recv).dst;
          const int maker = maker_of(rank_, s);
          program_.actions[index(maker >= 0 ? maker : s)].also_into.push_back({message.to, range.place, range.first});
        }
      const int maker = action.fill_count > 0 ? maker_of(rank_, s) : -1;
      if (maker >= 0 && program_.actions[index(maker)].also_staged < 0) {
        program_.actions[index(maker)].also_staged = action.from[0].staged;
        action.fill_count = 0;
      }
      action.written = action.kind == Kind::recv && is_written(incoming(rank_, s)[0]);
    }
  }

  // Determines which steps the flag page shows, and for which receiving steps this rank waits. Call this function after
  // merge_sends(). merge_sends() decides which data are written by senders.
  void finish(int s) {
    Action& action = program_.actions[index(s)];
    if (eager_) return;
    action.shown = action.kind == Kind::send || receives(schedule().steps[index(s)]);
    for (const int before : action.after)
      for (const Message& message : outgoing(rank_, before)) action.readers.push_back(reader(message));
    for (const Message& message : outgoing(rank_, s)) program_.at_the_end.push_back(reader(message));
  }
  Event reader(const Message& message) const {
    const std::int64_t count = step(message.from, message.send).src[0].count;
    return {message.to, message.recv, is_written(message) ? count : 0};
  }

  const StepGraph& graph_;
  const std::vector<Schedule>& ranks_;
  const int rank_;
  const bool eager_;
  std::vector<StageLayout> stages_;  // indexed by rank
  Program program_;
};

}  // namespace

StagingRule cells_for(std::int64_t element_bytes) {
  return {.line_elements = EagerCell::data_bytes / element_bytes, .eager = true};
}

bool is_eager(const std::vector<Schedule>& ranks, std::int64_t element_bytes) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const Schedule& schedule) {
    return StageLayout(schedule, cells_for(element_bytes)).lines <= cells;
  });
}

Program compile(const StepGraph& graph, int rank, StagingRule staging) { return Compiler(graph, rank, staging).run(); }

}  // namespace chorale::mapped
