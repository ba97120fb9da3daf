#include "collectives/prediction/caches.hpp"

#include <algorithm>

#include "collectives/analysis/flow.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale::prediction {
namespace {

constexpr int most_cores = 64;
struct Segment {  // consecutive elements of a rank that are always accessed together
  std::size_t first = 0;
  std::uint64_t holders = 0;  // one bit for each core whose caches hold the segment
  int loaded_by = -1;         // the work item that loaded the segment last
};

}  // namespace

Caches::Caches(const std::vector<Schedule>& ranks, std::vector<int> core_of) : ranks_(ranks), core_of_(std::move(core_of)) {
  require(std::ranges::all_of(core_of_, [](int core) { return core < most_cores; }), "caches are modeled of {} cores only",
          most_cores);
}

void Caches::note(int work, int by, int owner, const Range& elements, Access access) {
  if (elements.count == 0) return;
  const std::size_t first = Lineup(ranks_[index(owner)]).at(elements.place, elements.first);
  notes_.push_back({work, core_of_[index(by)], owner, first, first + static_cast<std::size_t>(elements.count), access});
}

std::vector<Caches::Count> Caches::counts(std::size_t works) {
  std::vector<std::vector<Segment>> segments(ranks_.size());
  for (const Note& note : notes_)
    for (const std::size_t cut : {note.first, note.last}) segments[index(note.owner)].push_back({cut});
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
    for (const Note& note : notes_) {
      auto& own = segments[index(note.owner)];
      const std::uint64_t core = std::uint64_t{1} << note.core;
      Count& count = counts[index(note.work)];
      auto at = std::lower_bound(own.begin(), own.end(), Segment{note.first}, before);
      for (; at->first < note.last; ++at) {
        const auto size = static_cast<double>((at + 1)->first - at->first);
        const bool stores = note.access == Access::store;
        const bool is_held = stores ? at->holders == core : (at->holders & core) != 0;
        if (!is_held) {
          count.fetched += size;
          count.added += note.access == Access::add ? size : 0;
        } else if (!stores || at->loaded_by != note.work)
          count.held += size;
        at->holders = stores ? core : at->holders | core;
        if (!stores) at->loaded_by = note.work;
        std::uint64_t& seen = touchers[index(note.owner)][static_cast<std::size_t>(at - own.begin())];
        if (!(seen & core)) touched_[index(note.core)] += size;
        seen |= core;
      }
    }
  }
  return counts;
}

double Caches::touched(int rank) const { return touched_[index(core_of_[index(rank)])]; }

}  // namespace chorale::prediction
