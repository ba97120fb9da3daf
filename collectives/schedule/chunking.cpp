#include "collectives/schedule/chunking.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "collectives/schedule/step_graph.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

Step chunk_of(const Step& step, int chunk, int chunks) {
  const auto cut = [&](Range& range) {
    const std::int64_t first = range.count * chunk / chunks, end = range.count * (chunk + 1) / chunks;
    range.first += first;
    range.count = end - first;
  };
  Step part{step.kind, step.peers, step.src, step.dst, {}, step.round + chunk, step.put};
  for (Range& range : part.src) cut(range);
  cut(part.dst);
  return part;
}

// Sorts the chunks by round, but keeps each step behind all steps on which this step depends. Messages between two ranks are
// matched in order. So sends to the same peer keep their order, and receives from the same peer keep their order.
void interleave(std::vector<Step>& steps) {
  std::vector<StepLinks> links = links_of(steps);
  std::vector<int> place(steps.size(), 0);
  using Turn = std::pair<int, int>;  // round, step
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> open;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (links[i].waits == 0) open.emplace(steps[i].round, i);
  std::vector<Step> ordered;
  ordered.reserve(steps.size());
  while (!open.empty()) {
    const std::size_t i = index(open.top().second);
    open.pop();
    place[i] = static_cast<int>(ordered.size());
    for (int& earlier : steps[i].after) earlier = place[index(earlier)];
    std::sort(steps[i].after.begin(), steps[i].after.end());
    ordered.push_back(std::move(steps[i]));
    for (const auto* const followers : {&links[i].dependents, &links[i].successors})
      for (const int follower : *followers)
        if (--links[index(follower)].waits == 0) open.emplace(steps[index(follower)].round, follower);
  }
  steps = std::move(ordered);
}

}  // namespace

Schedule cut_into_chunks(Schedule whole, int chunks) {
  require(chunks >= 1, "a schedule cannot be cut into {} chunks", chunks);
  if (chunks == 1) return whole;
  Schedule cut(whole.problem());
  cut.scratch(whole.scratch_count());
  std::vector<std::vector<int>> parts;  // for each step of `whole`, the numbers of its chunks, or −1 for an empty chunk
  for (const Step& step : whole.steps) {
    auto& numbers = parts.emplace_back();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      // add() derives dependencies from conflicting accesses. All other dependencies in `after` were requested by the
      // algorithm, so they are kept for each chunk.
      std::vector<int> ordered;
      for (const int earlier : step.after) {
        const auto before = static_cast<std::size_t>(earlier);
        const int part = parts[before][static_cast<std::size_t>(chunk)];
        if (part >= 0 && !conflict(whole.problem(), whole.steps[before], step)) ordered.push_back(part);
      }
      numbers.push_back(cut.add(chunk_of(step, chunk, chunks), ordered));
    }
  }
  interleave(cut.steps);
  return cut;
}

}  // namespace chorale
