#include "collectives/backends/message/plan.hpp"

#include <algorithm>

#include "collectives/schedule/chunking.hpp"
#include "collectives/schedule/step_graph.hpp"
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
    if (std::ranges::find(plan.peers, peer) == plan.peers.end()) plan.peers.push_back(peer);
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

  const std::vector<StepLinks> links = links_of(schedule.steps);
  const auto append = [this](const std::vector<int>& list) {
    const int first = static_cast<int>(released.size());
    released.insert(released.end(), list.begin(), list.end());
    return Indices{first, static_cast<int>(released.size())};
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].waits = links[i].waits;
    steps[i].over = append(links[i].dependents);
    steps[i].posted = append(links[i].successors);
  }
}

}  // namespace chorale
