// Where peers find a rank's buffers in a call. Mapped buffers are used in place. Ordinary buffers go through stand-ins in
// symmetric memory, created at the first such call, or the kernel reads them:
//
//   mapped                                  in their own place
//   ordinary, in a call worth slicing       in a stand-in for one slice; so all ranks take the call in slices
//   ordinary, others, ≤ copied_up_to        in a stand-in for the vector
//   ordinary, others, larger                in their own place: the kernel reads them; a stand-in if it may not
#pragma once
#include "collectives/backends/mapped/reach.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);

struct Whereabouts {     // what a rank shows to its peers
  Location location[3];  // of input, output and scratch
  bool stays[3];         // the location is the same for every slice; otherwise each slice is at its place in the vector
  bool in_slices;        // this rank has ordinary buffers and can take the call only in slices
};

class Places {
 public:
  Places(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t slice_count, bool streams);

  void start(const Run& run) { vector_[input] = run.input, vector_[output] = run.output; }
  const Whereabouts& find();  // call before peers look there
  // take_in: a part begins at element `first`, so its input is copied. give_back: the part is over, so its output is copied.
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
  Buffer scratch_, stand_in_[2];
  Whereabouts where_ = {};
  void* vector_[2] = {};  // the caller's buffers
  std::byte* place_[3] = {};
};

}  // namespace chorale::mapped
