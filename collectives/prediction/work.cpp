#include "collectives/prediction/work.hpp"

#include <algorithm>
#include <map>

#include "src/base/index.hpp"

namespace chorale::prediction {
Site Site::one_host(int ranks, int cores) {
  const std::vector<int> zeros(index(ranks), 0);
  return {zeros, zeros, cores};
}

bool Site::crowded() const {
  return std::ranges::any_of(machine_of, [&](int machine) { return std::ranges::count(machine_of, machine) > cores; });
}

std::vector<int> Site::core_of() const {
  std::map<int, int> ranks_on;                 // keyed by machine
  std::map<std::pair<int, int>, int> numbers;  // keyed by machine and core of the machine
  std::vector<int> core_of;
  for (const int machine : machine_of) {
    const int next = static_cast<int>(numbers.size());
    core_of.push_back(numbers.try_emplace({machine, ranks_on[machine]++ % cores}, next).first->second);
  }
  return core_of;
}

int WorkGraph::add(int rank, double seconds) {
  works_.push_back({rank, -1, seconds});
  return static_cast<int>(works_.size()) - 1;
}

void WorkGraph::add(int rank, int earlier, const WorkBeside& beside) {
  for (std::int64_t piece = 0; piece < beside.pieces; ++piece) after(earlier, add(rank, beside.seconds));
}

int WorkGraph::add_transfer(int from, int to, double seconds) {
  works_.push_back({from, to, seconds});
  return static_cast<int>(works_.size()) - 1;
}

void WorkGraph::after(int earlier, int later, double latency) {
  works_[index(earlier)].next.push_back({later, latency});
  ++works_[index(later)].missing;
}

std::vector<int> WorkGraph::order() const {
  std::vector<int> order, missing;
  for (const Work& work : works_) missing.push_back(work.missing);
  for (std::size_t w = 0; w < works_.size(); ++w)
    if (missing[w] == 0) order.push_back(static_cast<int>(w));
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const Next& next : works_[index(order[i])].next)
      if (--missing[index(next.work)] == 0) order.push_back(next.work);
  return order;
}

}  // namespace chorale::prediction
