// Tells peers how to access a rank's buffers in a call. Peers access mapped buffers directly. Ordinary buffers are not
// mapped. The data of a short message from an ordinary buffer are staged: this rank copies them to its stage in symmetric
// memory. A long message is copied by the operating system's kernel, from or to the buffer itself.
//
//   buffer                                peers access
//   mapped                                the buffer
//   ordinary, message up to staged_up_to  the sender's stage
//   ordinary, longer message              the buffer, through the kernel; or the stage if the kernel forbids that
//
// All paths add the same numbers in the same order, so a sum does not depend on the kind of memory.
#pragma once
#include "collectives/backends/mapped/flag_page.hpp"
#include "collectives/backends/mapped/program.hpp"
#include "collectives/backends/mapped/reach.hpp"
#include "collectives/transport/transport.hpp"

namespace chorale::mapped {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);

struct Whereabouts {     // tells peers where a rank's buffers are
  Location location[3];  // locations of input, output and scratch
  Location stage;        // meaningless if all buffers are mapped
};
static_assert(sizeof(Whereabouts) <= where_bytes);

class BufferPlaces {
 public:
  // `lines` is the size of the stage.
  BufferPlaces(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t lines);

  const Whereabouts& find(const Run& run);  // allocates the stage when a run first needs it
  std::byte* of(Place place) const { return place_[static_cast<int>(place)]; }
  bool is_mapped_here(Place place) const { return where_.location[static_cast<int>(place)] & is_mapped; }
  std::byte* stage() const { return static_cast<std::byte*>(stage_.data()); }

 private:
  Reach& reach_;
  const std::int64_t stage_bytes_;
  Buffer scratch_, stage_;
  Whereabouts where_ = {};
  std::byte* place_[3] = {};
};

}  // namespace chorale::mapped
