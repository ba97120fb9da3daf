// The buffers of one rank with a symbol for each element, for whoever runs schedules on symbols. In place, input and output are one
// vector, and an index into either is one into that.
#pragma once
#include <algorithm>
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

template <class Symbol>
class SymbolicMemory {
 public:
  explicit SymbolicMemory(const Schedule& schedule) : problem_(schedule.problem()) {
    const Problem& p = problem_;
    const auto of = [](std::int64_t count) { return std::vector<Symbol>(static_cast<std::size_t>(count)); };
    input_ = of(p.in_place ? std::max({p.blocks.total(), p.input_count(), p.output_count()}) : p.input_count());
    output_ = of(p.in_place ? 0 : p.output_count());
    scratch_ = of(schedule.scratch_count());
  }

  std::int64_t count(Place place) const {
    if (place == Place::scratch) return static_cast<std::int64_t>(scratch_.size());
    return place == Place::input ? problem_.input_count() : problem_.output_count();
  }

  Symbol* find(Place place, std::int64_t index) {  // nullptr outside the buffer
    const Problem& p = problem_;
    if (index < 0 || index >= count(place)) return nullptr;
    if (place == Place::scratch) return &scratch_[static_cast<std::size_t>(index)];
    if (p.in_place)
      return &input_[static_cast<std::size_t>(index + (place == Place::input ? p.input_home() : p.output_home()))];
    return &(place == Place::input ? input_ : output_)[static_cast<std::size_t>(index)];
  }

 private:
  const Problem& problem_;
  std::vector<Symbol> input_, output_, scratch_;
};

}  // namespace chorale
