// Decides how peers access a rank's buffers in a call. Peers access mapped buffers directly. Ordinary buffers are not
// mapped. For these buffers, either the operating system copies the data to a peer, or this rank copies the data to and from
// a bounce buffer in symmetric memory. A bounce buffer is allocated when a call first needs it.
//
//   buffer                                         peers access
//   mapped                                         the buffer
//   ordinary, in a call that runs in slices        a bounce buffer of one slice (so all ranks run the call in slices)
//   ordinary, other calls, up to copied_up_to      a bounce buffer of the complete vector
//   ordinary, other calls, larger                  the buffer, through the kernel; or a bounce buffer if that is forbidden
#pragma once
#include "collectives/backends/mapped/reach.hpp"
#include "collectives/transport/transport.hpp"

namespace chorale::mapped {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);

struct Whereabouts {     // tells peers where a rank's buffers are
  Location location[3];  // locations of input, output and scratch
  // True: every slice uses this location. False: this is the location of the first slice, and each slice lies directly
  // behind the previous slice.
  bool stays[3];
  bool in_slices;  // this rank's buffers are ordinary, so the call must run in slices
};

class BufferPlaces {
 public:
  BufferPlaces(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t slice_count, bool streams);

  void start(const Run& run) {
    vector_[input] = run.input;
    vector_[output] = run.output;
  }
  const Whereabouts& find();  // decides how peers access this rank's buffers in this run
  // Call take_in when a part begins, with the part's first element `first`, and give_back when the part has completed. If
  // there are bounce buffers, take_in copies the part's input to its bounce buffer, and give_back copies the part's output
  // to the caller's buffer.
  void take_in(std::int64_t first, const Problem& part) {
    for (const int which : {input, output})
      if (!where_.stays[which]) place_[which] = at(which, first);
    if (where_.stays[input]) copy_in(first, part);
  }
  void give_back(std::int64_t first, const Problem& part) {
    if (where_.stays[output]) copy_out(first, part);
  }
  std::byte* of(Place place) const { return place_[static_cast<int>(place)]; }

 private:
  void copy_in(std::int64_t first, const Problem& part);
  void copy_out(std::int64_t first, const Problem& part);
  std::byte* at(int which, std::int64_t first) const {  // null if the call has no such buffer
    return vector_[which] ? static_cast<std::byte*>(vector_[which]) + first * element_ : nullptr;
  }

  Reach& reach_;
  const Problem problem_;
  const std::int64_t element_, slice_count_;
  const bool streams_;
  Buffer scratch_, bounce_[2];
  Whereabouts where_ = {};
  void* vector_[2] = {};  // the caller's buffers
  std::byte* place_[3] = {};
};

}  // namespace chorale::mapped
