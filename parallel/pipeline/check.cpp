#include "parallel/pipeline/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace chorale {
namespace {

// One end of a message: a send or a receive. A message is identified by the action that needs it.
struct MessageEnd {
  bool sends;
  std::int64_t peer;
  PipelineAction message;
};
using Transfers = std::vector<std::vector<MessageEnd>>;  // indexed by stage; each list is in order

Transfers transfers_of(const PipelineSchedule& schedule) {
  Transfers transfers(schedule.actions.size());
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    for (const PipelineAction& action : schedule.actions[at]) {
      const auto source = source_of(schedule, {stage, action}), taker = taker_of(schedule, {stage, action});
      if (source && source->stage != stage) transfers[at].push_back({false, source->stage, action});
      if (taker && taker->stage != stage) transfers[at].push_back({true, taker->stage, taker->action});
    }
  }
  return transfers;
}

std::string at(const PipelineSchedule& schedule, std::int64_t stage, const PipelineAction& action) {
  return fmt::format("stage {}, {}", stage, name_of(action, schedule.chunks));
}

// The position of each action in the list of one stage, or −1 if the list does not contain the action.
class Positions {
 public:
  explicit Positions(const PipelineShape& shape)
      : shape_(shape), places_(static_cast<std::size_t>(3 * shape.chunks * shape.micro_batches), -1) {}
  std::int64_t& of(const PipelineAction& action) {
    const auto kind = static_cast<std::int64_t>(action.kind);
    return places_.at(
        static_cast<std::size_t>((kind * shape_.chunks + action.chunk) * shape_.micro_batches + action.micro_batch));
  }

 private:
  const PipelineShape& shape_;
  std::vector<std::int64_t> places_;
};

std::string find_not_once(const PipelineSchedule& schedule, std::int64_t stage, Positions& positions) {
  const auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const PipelineAction& a = actions[i];
    const bool known = a.micro_batch >= 0 && a.micro_batch < schedule.micro_batches && a.chunk >= 0 &&
                       a.chunk < schedule.chunks && (schedule.splits || a.kind != Pass::weights);
    if (!known) return at(schedule, stage, a) + ": is not an action of this shape";
    std::int64_t& position = positions.of(a);
    if (position >= 0) return at(schedule, stage, a) + ": occurs twice";
    position = static_cast<std::int64_t>(i);
  }
  for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
    for (std::int64_t k = 0; k < schedule.micro_batches; ++k)
      for (const Pass kind : {Pass::forward, Pass::backward, Pass::weights})
        if ((kind != Pass::weights || schedule.splits) && positions.of({kind, k, chunk}) < 0)
          return at(schedule, stage, {kind, k, chunk}) + ": is missing";
  return "";
}

// An action can need results of the same stage, which are not sent as messages. So in each stage's list, an action must come
// after all actions of this stage whose results it needs.
std::string find_too_early(const PipelineSchedule& schedule, std::int64_t stage, Positions& positions) {
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(stage)]) {
    std::vector<PipelineAction> needed;
    if (action.kind == Pass::backward) needed.push_back({Pass::forward, action.micro_batch, action.chunk});
    if (action.kind == Pass::weights) needed.push_back({Pass::backward, action.micro_batch, action.chunk});
    const auto source = source_of(schedule, {stage, action});
    if (source && source->stage == stage) needed.push_back(source->action);
    for (const PipelineAction& before : needed)
      if (positions.of(before) > positions.of(action))
        return fmt::format("{}: comes before {}, which it needs", at(schedule, stage, action),
                           name_of(before, schedule.chunks));
  }
  return "";
}

// Between two stages, messages must be received in the order in which they are sent. (find_not_once has checked that each
// message is sent and received once.)
std::string find_overtaken(const PipelineSchedule& schedule, const Transfers& transfers) {
  using Channel = std::pair<std::int64_t, std::int64_t>;  // sending stage, receiving stage
  std::map<Channel, std::vector<PipelineAction>> sent, received;
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage)
    for (const MessageEnd& t : transfers[static_cast<std::size_t>(stage)])
      (t.sends ? sent[{stage, t.peer}] : received[{t.peer, stage}]).push_back(t.message);
  for (const auto& [channel, messages] : sent) {
    const auto& wanted = received.at(channel);
    const auto [is, should] = std::mismatch(messages.begin(), messages.end(), wanted.begin(), wanted.end());
    if (is == messages.end()) continue;
    return fmt::format("{}: expects its message from stage {}, which sends the one for {} first",
                       at(schedule, channel.second, *should), channel.first, name_of(*is, schedule.chunks));
  }
  return "";
}

// A vector clock belongs to an action of a stage. The clock states how many actions of every stage must have begun when this
// action begins. A message carries the clock of its sender.
class VectorClocks {
 public:
  explicit VectorClocks(const PipelineSchedule& schedule) : schedule_(schedule), clocks_(schedule.actions.size()) {
    for (const auto& actions : schedule.actions)
      for (Positions& mine = positions_.emplace_back(schedule); const PipelineAction& action : actions)
        mine.of(action) = &action - actions.data();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < clocks_.size(); ++stage)
        while (advance(stage)) moved = true;
    }
  }

  // Returns the first action of `stage` that can start only after the action `begun` of a different stage has begun.
  std::size_t first_to_know(std::size_t stage, const StagedAction& begun) {
    const auto& mine = clocks_[stage];
    const auto there = static_cast<std::size_t>(begun.stage);
    const std::int64_t at = positions_[there].of(begun.action);
    const auto first = std::ranges::partition_point(mine, [&](const auto& known) { return known[there] <= at; });
    return first == mine.end() ? schedule_.actions[stage].size() : static_cast<std::size_t>(first - mine.begin());
  }

 private:
  bool advance(std::size_t stage) {
    const std::size_t next = clocks_[stage].size();
    if (next == schedule_.actions[stage].size()) return false;
    std::vector<std::int32_t> known = next > 0 ? clocks_[stage].back() : std::vector<std::int32_t>(clocks_.size(), 0);
    const auto source = source_of(schedule_, {static_cast<std::int64_t>(stage), schedule_.actions[stage][next]});
    if (source && source->stage != static_cast<std::int64_t>(stage)) {
      const auto& theirs = clocks_[static_cast<std::size_t>(source->stage)];
      const std::int64_t sent = positions_[static_cast<std::size_t>(source->stage)].of(source->action);
      if (sent < 0 || sent >= std::ssize(theirs)) return false;
      std::ranges::transform(known, theirs[static_cast<std::size_t>(sent)], known.begin(), std::ranges::max);
    }
    known[stage] = static_cast<std::int32_t>(next) + 1;
    clocks_[stage].push_back(std::move(known));
    return true;
  }

  const PipelineSchedule& schedule_;
  std::vector<Positions> positions_;                            // indexed by stage
  std::vector<std::vector<std::vector<std::int32_t>>> clocks_;  // the vector clock of each action; the indices are
                                                                // [stage][action]
};

// Simulates all transfers. Messages between two stages arrive in order. Returns the first stage that is stuck, or −1 if all
// stages finish.
std::int64_t find_stuck(const Transfers& transfers, bool buffered) {
  std::vector<std::size_t> next(transfers.size(), 0);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> under_way;  // the key is (sending stage, receiving stage)
  const auto goes_on = [&](std::int64_t stage) {
    const auto me = static_cast<std::size_t>(stage);
    if (next[me] == transfers[me].size()) return false;
    const MessageEnd& t = transfers[me][next[me]];
    const auto peer = static_cast<std::size_t>(t.peer);
    if (buffered) {
      auto& messages = t.sends ? under_way[{stage, t.peer}] : under_way[{t.peer, stage}];
      if (!t.sends && messages == 0) return false;
      messages += t.sends ? 1 : -1;
    } else {  // sender and receiver proceed together, once both have arrived
      if (!t.sends || next[peer] == transfers[peer].size()) return false;
      const MessageEnd& theirs = transfers[peer][next[peer]];
      if (theirs.sends || theirs.peer != stage || theirs.message != t.message) return false;
      ++next[peer];
    }
    ++next[me];
    return true;
  };
  const auto stages = static_cast<std::int64_t>(transfers.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t stage = 0; stage < stages; ++stage)
      while (goes_on(stage)) moved = true;
  }
  for (std::int64_t stage = 0; stage < stages; ++stage)
    if (next[static_cast<std::size_t>(stage)] < transfers[static_cast<std::size_t>(stage)].size()) return stage;
  return -1;
}

}  // namespace

std::string find_flaw(const PipelineSchedule& schedule) {
  if (static_cast<std::int64_t>(schedule.actions.size()) != schedule.stages)
    return fmt::format("{} of {} stages have a list of actions", schedule.actions.size(), schedule.stages);
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    Positions positions(schedule);
    for (const auto find : {find_not_once, find_too_early})
      if (const std::string flaw = find(schedule, stage, positions); !flaw.empty()) return flaw;
  }
  const Transfers transfers = transfers_of(schedule);
  if (const std::string flaw = find_overtaken(schedule, transfers); !flaw.empty()) return flaw;
  const std::int64_t stuck = find_stuck(transfers, true);
  return stuck < 0 ? "" : fmt::format("stage {}: deadlock, it waits for a message that never comes", stuck);
}

bool needs_buffers(const PipelineSchedule& schedule) { return find_stuck(transfers_of(schedule), false) >= 0; }

std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule) {
  const Pass last = schedule.splits ? Pass::weights : Pass::backward;
  std::vector<std::int64_t> most;
  for (const auto& actions : schedule.actions) {
    std::int64_t now = 0, top = 0;
    for (const PipelineAction& action : actions) {
      now += (action.kind == Pass::forward) - (action.kind == last);
      top = std::max(top, now);
    }
    most.push_back(top);
  }
  return most;
}

std::vector<std::size_t> read_at_latest(const PipelineSchedule& schedule, std::int64_t stage) {
  const auto& actions = schedule.actions.at(static_cast<std::size_t>(stage));
  std::vector<std::size_t> latest(actions.size(), actions.size());
  // If there are only forward passes and one chunk per stage, no stage gets messages from later stages.
  const bool one_way = schedule.parts() == schedule.stages &&
                       std::ranges::all_of(actions, [](const PipelineAction& a) { return a.kind == Pass::forward; });
  if (schedule.stages == 1 || one_way) return latest;
  VectorClocks clocks(schedule);
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (const auto taker = taker_of(schedule, {stage, actions[i]}); taker && taker->stage != stage)
      latest[i] = clocks.first_to_know(static_cast<std::size_t>(stage), *taker);
  return latest;
}

std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule) {
  std::vector<std::int64_t> sent;
  for (const auto& transfers : transfers_of(schedule))
    sent.push_back(std::count_if(transfers.begin(), transfers.end(), [](const MessageEnd& t) { return t.sends; }));
  return sent;
}

}  // namespace chorale
