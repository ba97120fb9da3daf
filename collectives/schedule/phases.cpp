#include "collectives/schedule/phases.hpp"

namespace chorale {

namespace {

bool own_block_stays(const Problem& p) { return p.in_place && p.blocks.first(p.rank) == p.taken.first(p.rank); }

}  // namespace

Home outgoing(Schedule& s) {
  const Problem& p = s.problem();
  if (!p.in_place) return in_input(p);
  const Home aside = in_scratch(s);
  const auto set_aside = [&](std::int64_t first, std::int64_t end) {
    s.copy(input(first, end - first), {Place::scratch, aside(0).first + first, end - first});
  };
  const std::int64_t own = p.blocks.first(p.rank);
  set_aside(0, own);
  set_aside(own_block_stays(p) ? own + p.blocks.count(p.rank) : own, p.blocks.total());
  return aside;
}

void keep_own_block(Schedule& s, const Home& given) {
  const Problem& p = s.problem();
  if (!own_block_stays(p)) s.copy(given(p.rank), in_taken(p)(p.rank));
}

std::vector<int> others_from(int rank, int size) {
  std::vector<int> others;
  for (int k = 1; k < size; ++k) others.push_back(modulo(rank + k, size));
  return others;
}

void append_merged(std::vector<Range>& ranges, const Range& range) {
  if (!ranges.empty() && ranges.back().place == range.place && ranges.back().first + ranges.back().count == range.first)
    ranges.back().count += range.count;
  else
    ranges.push_back(range);
}

std::vector<Range> around(const Home& home, int size, int first, int count) {
  std::vector<Range> pieces;
  for (int i = 0; i < count; ++i) append_merged(pieces, home((first + i) % size));
  return pieces;
}

}  // namespace chorale
