#include "collectives/backends/mapped/places.hpp"

#include <algorithm>
#include <cstring>

#include "src/math/copy.hpp"

namespace chorale::mapped {

BufferPlaces::BufferPlaces(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t slice_count,
                           bool streams)
    : reach_(reach),
      problem_(plan.problem),
      element_(size_of(plan.dtype)),
      slice_count_(slice_count),
      streams_(streams && !plan.problem.in_place) {
  if (scratch_count > 0) scratch_ = reach.memory().allocate(scratch_count * element_, Category::comm);
  place_[scratch] = static_cast<std::byte*>(scratch_.data());
}

const Whereabouts& BufferPlaces::find() {
  const Problem& p = problem_;
  const std::int64_t counts[2] = {p.input_count(), p.output_count()}, homes[2] = {p.input_home(), p.output_home()};
  where_.stays[scratch] = true;
  where_.in_slices = false;
  for (const int which : {input, output}) {
    place_[which] = static_cast<std::byte*>(vector_[which]);
    const std::int64_t vector = std::max(homes[input] + counts[input], homes[output] + counts[output]);
    // In an in-place call, input and output are parts of one vector.
    const std::int64_t whole = p.in_place ? vector : counts[which];
    const bool worth_a_copy = slice_count_ > 0 || !reach_.can_read() || whole * element_ <= reach_.copied_up_to;
    where_.stays[which] = !(reach_.locate(place_[which]) & is_mapped) && counts[which] > 0 && worth_a_copy;
    if (!where_.stays[which]) continue;
    where_.in_slices = slice_count_ > 0;
    Buffer& buffer = bounce_[p.in_place ? input : which];
    if (!buffer.data())
      buffer = reach_.memory().allocate((slice_count_ > 0 ? slice_count_ : whole) * element_, Category::comm);
    place_[which] = static_cast<std::byte*>(buffer.data()) + (p.in_place ? homes[which] * element_ : 0);
  }
  for (const int which : {input, output, scratch}) where_.location[which] = reach_.locate(place_[which]);
  return where_;
}

void BufferPlaces::copy_in(std::int64_t first, const Problem& part) {
  std::memcpy(place_[input], at(input, first), static_cast<std::size_t>(part.input_count() * element_));
}

// If a call is out of place and all its vectors together exceed the caches, the caller's vector is not in the caches. For
// such a call, this function uses non-temporal stores.
void BufferPlaces::copy_out(std::int64_t first, const Problem& part) {
  std::byte* vector = at(output, first);
  if (streams_)
    stream(vector, place_[output], part.output_count() * element_);
  else
    std::memcpy(vector, place_[output], static_cast<std::size_t>(part.output_count() * element_));
}

}  // namespace chorale::mapped
