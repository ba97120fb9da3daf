#include "collectives/backends/mapped/program.hpp"

#include <algorithm>
#include <map>

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale::mapped {
namespace {

struct MappedMessage {
  int sender, sender_step, receiver, receiver_step;
};

bool receives(const Step& step) { return step.kind == Kind::recv || step.kind == Kind::recv_reduce; }
class Compiler {
 public:
  Compiler(const std::vector<Schedule>& ranks, int rank, std::int64_t stage_elements) : ranks_(ranks), rank_(rank) {
    match();
    program_.staged = true;
    for (const Schedule& schedule : ranks) program_.staged = program_.staged && staged_elements(schedule) <= stage_elements;
    program_.scratch_count = schedule().scratch_count();
  }

  Program run() {
    const auto& steps = schedule().steps;
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) program_.actions.push_back(action(s));
    if (!program_.staged) merge_sends();
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) finish(s);
    return std::move(program_);
  }

 private:
  const Schedule& schedule() const { return ranks_[index(rank_)]; }
  const Step& step(int rank, int s) const { return ranks_[index(rank)].steps[index(s)]; }

  // The i-th send step from rank a to rank b matches the i-th receive step of rank b from rank a.
  void match() {
    std::map<std::pair<int, int>, std::vector<int>> sends;
    outgoing_.resize(ranks_.size());
    incoming_.resize(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      outgoing_[r].resize(ranks_[r].steps.size());
      incoming_[r].resize(ranks_[r].steps.size());
      for (std::size_t s = 0; s < ranks_[r].steps.size(); ++s)
        if (ranks_[r].steps[s].kind == Kind::send)
          for (const int peer : ranks_[r].steps[s].peers) sends[{static_cast<int>(r), peer}].push_back(static_cast<int>(s));
    }
    std::map<std::pair<int, int>, std::size_t> received;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < ranks_[r].steps.size(); ++s)
        if (receives(ranks_[r].steps[s]))
          for (const int peer : ranks_[r].steps[s].peers) {
            const std::pair<int, int> channel{peer, static_cast<int>(r)};
            const std::size_t nth = received[channel]++;
            require(nth < sends[channel].size(), "rank {} receives more messages from rank {} than it sends", r, peer);
            const MappedMessage message{peer, sends[channel][nth], static_cast<int>(r), static_cast<int>(s)};
            outgoing_[index(peer)][index(message.sender_step)].push_back(message);
            incoming_[r][s].push_back(message);
          }
  }

  static std::int64_t staged_elements(const Schedule& schedule) {
    std::int64_t sum = 0;
    for (const Step& step : schedule.steps)
      if (step.kind == Kind::send) sum += step.src[0].count;
    return sum;
  }

  // Returns the offset of a send's data in the staging buffer on the sender's flag page, or −1 if data are not staged. The
  // staging buffer holds the data of all sends of the sender, one after another.
  std::int64_t stage_place(int sender, int s) const {
    if (!program_.staged) return -1;
    std::int64_t sum = 0;
    for (int before = 0; before < s; ++before)
      if (step(sender, before).kind == Kind::send) sum += step(sender, before).src[0].count;
    return sum;
  }

  Spot own(const Range& range) const { return {rank_, range.place, range.first}; }

  Spot sent(const MappedMessage& message) const {
    const Range& range = step(message.sender, message.sender_step).src[0];
    return {message.sender, range.place, range.first, stage_place(message.sender, message.sender_step)};
  }

  Action action(int s) {
    const Step& step = schedule().steps[index(s)];
    Action action{step.kind, step.kind == Kind::send ? step.src[0].count : step.dst.count, own(step.dst)};
    action.after = step.after;
    for (const Range& range : step.src) action.from.push_back(own(range));
    if (step.kind == Kind::send) action.from[0].staged = stage_place(rank_, s);
    for (const MappedMessage& message : incoming_[index(rank_)][index(s)]) {
      action.events.push_back({message.sender, message.sender_step});
      action.from.push_back(sent(message));
    }
    if (step.kind == Kind::recv_reduce)  // sorts all addends by rank, including this rank's addend
      std::sort(action.from.begin(), action.from.end(), [](const Spot& a, const Spot& b) { return a.rank < b.rank; });
    return action;
  }

  // Whether the sender may write to the receiver's target while step `maker` runs. The step `maker` is the recv_reduce that
  // produces the sent data, or −1 if there is none.
  bool can_be_written(const MappedMessage& message, int maker) const {
    const Step& sender = step(message.sender, message.sender_step);
    const Step& receiver = step(message.receiver, message.receiver_step);
    if (receiver.kind != Kind::recv || receiver.dst.place != Place::output) return false;
    if (receiver.after.empty()) return true;
    if (maker < 0) return false;
    const Problem& problem = ranks_[index(message.receiver)].problem();
    const auto& made_from = incoming_[index(message.sender)][index(maker)];
    // Earlier steps of the receiver could access the target. Writing is safe if only the maker still reads the target,
    // because the maker reads each element before it writes that element.
    return std::all_of(receiver.after.begin(), receiver.after.end(), [&](int before) {
      const Step& other = step(message.receiver, before);
      const auto& readers = outgoing_[index(message.receiver)][index(before)];
      const bool same_place = other.kind == Kind::send && same_start(problem, other.src[0], receiver.dst);
      return same_place && readers.size() == 1 && sender.src[0].count == other.src[0].count &&
             std::any_of(made_from.begin(), made_from.end(),
                         [&](const MappedMessage& m) { return m.sender == message.receiver && m.sender_step == before; });
    });
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

  bool is_written(const MappedMessage& message) const {
    const int maker = maker_of(message.sender, message.sender_step);
    const bool wanted = maker >= 0 || step(message.sender, message.sender_step).put;
    return !program_.staged && wanted && can_be_written(message, maker);
  }

  void merge_sends() {
    for (int s = 0; s < static_cast<int>(program_.actions.size()); ++s) {
      Action& action = program_.actions[index(s)];
      for (const MappedMessage& message : outgoing_[index(rank_)][index(s)])
        if (is_written(message)) {
          const Range& range = step(message.receiver, message.receiver_step).dst;
          const int maker = maker_of(rank_, s);
          program_.actions[index(maker >= 0 ? maker : s)].also_into.push_back({message.receiver, range.place, range.first});
        }
      action.written = action.kind == Kind::recv && is_written(incoming_[index(rank_)][index(s)][0]);
    }
  }

  // Determines which steps the flag page shows, and for which receiving steps this rank waits. Call this function after
  // merge_sends(). merge_sends() decides which data are written by senders.
  void finish(int s) {
    Action& action = program_.actions[index(s)];
    action.shown = action.kind == Kind::send || (receives(schedule().steps[index(s)]) && !program_.staged);
    if (program_.staged) return;
    for (const int before : action.after)
      for (const MappedMessage& message : outgoing_[index(rank_)][index(before)]) action.readers.push_back(reader(message));
    for (const MappedMessage& message : outgoing_[index(rank_)][index(s)]) program_.at_the_end.push_back(reader(message));
  }
  Event reader(const MappedMessage& message) const { return {message.receiver, message.receiver_step, is_written(message)}; }

  const std::vector<Schedule>& ranks_;
  int rank_;
  Program program_;
  std::vector<std::vector<std::vector<MappedMessage>>> outgoing_, incoming_;  // indexed by rank and step
};

}  // namespace

Program compile(const std::vector<Schedule>& ranks, int rank, std::int64_t stage_elements) {
  return Compiler(ranks, rank, stage_elements).run();
}

}  // namespace chorale::mapped
