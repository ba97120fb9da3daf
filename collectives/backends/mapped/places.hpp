// Where peers find a rank's buffers in a call: where they lie, if that is mapped or the kernel lets peers read it, else in stand-ins in
// symmetric memory, made at the first such call.
//
//   mapped                                  where they lie
//   ordinary, of a call worth slices        a stand-in for a slice; so all ranks take the call in slices
//   ordinary, others, ≤ copied_up_to        a stand-in for the vector
//   ordinary, others, larger                where they lie: the kernel reads them
#pragma once
#include "collectives/backends/mapped/reach.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);

struct Whereabouts {     // what a rank shows of it
  Location location[3];  // of its input, output and scratch
  bool stays[3];         // is the same for every slice; else a slice lies where it does in the vector
  bool in_slices;        // it has ordinary buffers, and can only take the call in slices
};

class Places {
 public:
  Places(Reach& reach, const Plan& plan, std::int64_t scratch_count, std::int64_t slice_count, bool streams);

  void start(const Run& run) { vector_[input] = run.input, vector_[output] = run.output; }
  const Whereabouts& find();  // when peers are to look there
  // A part of it begins, at that element: its input is copied; and is over: its output is.
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
  std::byte* at(int which, std::int64_t first) const {  // a call without input or output may have none
    return vector_[which] ? static_cast<std::byte*>(vector_[which]) + first * element_ : nullptr;
  }

  Reach& reach_;
  const Problem problem_;
  const std::int64_t element_, slice_count_;
  const bool streams_;
  Buffer scratch_, stand_in_[2];
  Whereabouts where_ = {};
  void* vector_[2] = {};  // the caller's
  std::byte* place_[3] = {};
};

}  // namespace chorale::mapped
