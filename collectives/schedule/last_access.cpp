#include "collectives/schedule/last_access.hpp"

namespace chorale {

LastAccess::Pieces::iterator LastAccess::cut(std::int64_t element) {
  const auto next = pieces_.lower_bound(element);
  if (next != pieces_.end() && next->first == element) return next;
  const Piece whole = std::prev(next)->second;
  return pieces_.emplace_hint(next, element, whole);
}

void LastAccess::read(std::int64_t first, std::int64_t count, int step, std::vector<int>& after) {
  const auto begin = cut(first), end = cut(first + count);
  for (auto piece = begin; piece != end; ++piece) {
    if (piece->second.writer >= 0) after.push_back(piece->second.writer);
    piece->second.readers.push_back(step);
  }
}

void LastAccess::write(std::int64_t first, std::int64_t count, int step, std::vector<int>& after) {
  const auto begin = cut(first), end = cut(first + count);
  for (auto piece = begin; piece != end; ++piece) {
    if (piece->second.writer >= 0) after.push_back(piece->second.writer);
    for (const int reader : piece->second.readers)
      if (reader != step) after.push_back(reader);  // a step may overwrite its own addend
  }
  begin->second = {step, {}};
  pieces_.erase(std::next(begin), end);
}

}  // namespace chorale
