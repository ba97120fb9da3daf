#include "collectives/backends/mapped/places.hpp"

namespace chorale::mapped {

BufferPlaces::BufferPlaces(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t lines)
    : reach_(reach), stage_bytes_(lines * line_bytes) {
  if (scratch_count > 0) scratch_ = reach.memory().allocate(scratch_count * size_of(plan.dtype), Category::comm);
  place_[scratch] = static_cast<std::byte*>(scratch_.data());
  where_.location[scratch] = reach.locate(place_[scratch]);
}

const Whereabouts& BufferPlaces::find(const Run& run) {
  place_[input] = static_cast<std::byte*>(run.input);
  place_[output] = static_cast<std::byte*>(run.output);
  bool all_mapped = true;
  for (const int which : {input, output}) {
    where_.location[which] = reach_.locate(place_[which]);
    all_mapped = all_mapped && (!place_[which] || where_.location[which] & is_mapped);
  }
  if (!all_mapped && stage_bytes_ > 0 && !stage_.data()) stage_ = reach_.memory().allocate(stage_bytes_, Category::comm);
  where_.stage = stage_.data() ? reach_.locate(stage_.data()) : 0;
  return where_;
}

}  // namespace chorale::mapped
