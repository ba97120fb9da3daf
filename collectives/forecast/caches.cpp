#include "collectives/forecast/caches.hpp"

#include <algorithm>

#include "collectives/analysis/flow.hpp"
#include "src/base/error.hpp"

namespace chorale::forecast {
namespace {

constexpr int most_cores = 64;  // one bit each
std::size_t index(int i) { return static_cast<std::size_t>(i); }

struct Segment {  // consecutive elements of a rank that are always accessed together
  std::size_t first = 0;
  std::uint64_t holders = 0;  // cores that have it in their caches, as bits
};

}  // namespace

Caches::Caches(const std::vector<Schedule>& ranks, std::vector<int> core_of) : ranks_(ranks), core_of_(std::move(core_of)) {
  require(std::ranges::all_of(core_of_, [](int core) { return core < most_cores; }), "caches are modelled of {} cores only",
          most_cores);
}

void Caches::note(int work, int by, int owner, const Range& elements, bool writes) {
  if (elements.count == 0) return;
  const std::size_t first = Lineup(ranks_[index(owner)]).at(elements.place, elements.first);
  accesses_.push_back({work, core_of_[index(by)], owner, first, first + static_cast<std::size_t>(elements.count), writes});
}

std::vector<Caches::Count> Caches::counts(std::size_t works) {
  std::vector<std::vector<Segment>> segments(ranks_.size());
  for (const Access& access : accesses_)
    for (const std::size_t cut : {access.first, access.last}) segments[index(access.owner)].push_back({cut});
  const auto before = [](const Segment& a, const Segment& b) { return a.first < b.first; };
  for (auto& own : segments) {
    std::ranges::sort(own, before);
    own.erase(std::unique(own.begin(), own.end(), [](const Segment& a, const Segment& b) { return a.first == b.first; }),
              own.end());
  }
  std::vector<Count> counts;
  for (int call = 1; call <= 2; ++call) {
    counts.assign(works, {});
    touched_.assign(most_cores, 0);
    std::vector<std::vector<std::uint64_t>> touchers;
    for (const auto& own : segments) touchers.emplace_back(own.size(), 0);
    for (const Access& access : accesses_) {
      auto& own = segments[index(access.owner)];
      const std::uint64_t core = std::uint64_t{1} << access.core;
      auto at = std::lower_bound(own.begin(), own.end(), Segment{access.first}, before);
      for (; at->first < access.last; ++at) {
        const auto size = static_cast<double>((at + 1)->first - at->first);
        const bool is_held = access.writes ? at->holders == core : (at->holders & core) != 0;
        (is_held ? counts[index(access.work)].held : counts[index(access.work)].fetched) += size;
        at->holders = access.writes ? core : at->holders | core;
        std::uint64_t& seen = touchers[index(access.owner)][static_cast<std::size_t>(at - own.begin())];
        if (!(seen & core)) touched_[index(access.core)] += size;
        seen |= core;
      }
    }
  }
  return counts;
}

double Caches::touched(int rank) const { return touched_[index(core_of_[index(rank)])]; }

}  // namespace chorale::forecast
