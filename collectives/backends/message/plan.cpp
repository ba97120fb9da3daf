#include "collectives/backends/message/plan.hpp"

#include <algorithm>
#include <map>

#include "collectives/schedule/chunking.hpp"
#include "src/base/round_up.hpp"

namespace chorale {
namespace {

std::int64_t cache_lines(std::int64_t bytes) { return round_up(bytes, 64); }

// Appends one step to the plan, together with the step's messages and the locations of its addends.
void flatten(const Step& step, int index, int rank, MessagePlan& plan) {
  const std::int64_t width = size_of(plan.dtype);
  const auto spot = [&](const Range& range) { return BufferAddress{range.place, range.first * width}; };
  FlatStep flat{step.kind};
  flat.messages.first = static_cast<int>(plan.messages.size());
  flat.addends.first = static_cast<int>(plan.spots.size());
  flat.dst = spot(step.dst);
  flat.count = step.dst.count;
  const std::int64_t bytes = (step.kind == Kind::send ? step.src.at(0) : step.dst).count * width;
  for (const int peer : step.peers) {
    BufferAddress place = step.kind == Kind::send ? spot(step.src[0]) : flat.dst;
    if (step.kind == Kind::recv_reduce) {
      place = {Place::scratch, plan.workspace_bytes};
      plan.workspace_bytes += cache_lines(bytes);
    }
    plan.messages.push_back({peer, step.kind != Kind::send, index, place, bytes});
  }
  if (step.kind != Kind::send)
    for (const Range& own : step.src) plan.spots.push_back(spot(own));
  if (step.kind == Kind::recv_reduce) {  // puts addends in rank order: moves this rank's addend between its peers' addends
    const auto before = std::lower_bound(step.peers.begin(), step.peers.end(), rank) - step.peers.begin();
    for (std::size_t i = 0; i < step.peers.size(); ++i)
      plan.spots.push_back(plan.messages[static_cast<std::size_t>(flat.messages.first) + i].spot);
    const auto first = plan.spots.begin() + flat.addends.first;
    std::rotate(first, first + 1, first + 1 + before);
  }
  flat.messages.last = static_cast<int>(plan.messages.size());
  flat.addends.last = static_cast<int>(plan.spots.size());
  plan.most_addends = std::max(plan.most_addends, flat.addends.last - flat.addends.first);
  plan.steps.push_back(flat);
}

}  // namespace

MessagePlan::MessagePlan(const Plan& plan) : dtype(plan.dtype), op(plan.op) {
  const Schedule schedule = cut_into_chunks(plan.algorithm->plan(plan.problem), plan.chunks);
  workspace_bytes = cache_lines(schedule.scratch_count() * size_of(dtype));
  for (std::size_t i = 0; i < schedule.steps.size(); ++i)
    flatten(schedule.steps[i], static_cast<int>(i), plan.problem.rank, *this);

  std::vector<std::vector<int>> over(steps.size()), posted(steps.size());
  std::map<std::pair<int, bool>, int> newest;  // maps (peer, whether incoming) to the newest step with such a message
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int self = static_cast<int>(i);
    for (const int before : schedule.steps[i].after) over[static_cast<std::size_t>(before)].push_back(self);
    steps[i].waits = static_cast<int>(schedule.steps[i].after.size());
    for (int m = steps[i].messages.first; m < steps[i].messages.last; ++m) {
      const FlatMessage& message = messages[static_cast<std::size_t>(m)];
      const auto [channel, is_first] = newest.try_emplace({message.peer, message.incoming}, self);
      if (!is_first) {
        posted[static_cast<std::size_t>(channel->second)].push_back(self);
        ++steps[i].waits;
        channel->second = self;
      }
      if (std::find(peers.begin(), peers.end(), message.peer) == peers.end()) peers.push_back(message.peer);
    }
  }
  const auto append = [this](const std::vector<int>& list) {
    const int first = static_cast<int>(released.size());
    released.insert(released.end(), list.begin(), list.end());
    return Indices{first, static_cast<int>(released.size())};
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].over = append(over[i]);
    steps[i].posted = append(posted[i]);
  }
}

}  // namespace chorale
