// A large call, cut. Every element that an all_reduce, a reduce or a broadcast gives depends on the same element of the inputs
// alone, so the call is the same as one call on each slice of the vector after the other. That is how ordinary buffers are taken: what
// is copied into symmetric memory and back is still in the second cache when it is needed, where a whole vector would have left it.
//
//   buffers      | slice 0 | slice 1 | slice 2 | … | tail |      ordinary memory; on another rank they may be mapped
//                     ⇅
//   stand-in     |  slice  |                                     symmetric memory: one, for all of them in turn
#pragma once
#include <memory>

#include "collectives/backends/mapped/program.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

// What is run at once: a call or a slice of it.
struct Part {
  Part(const Plan& plan, std::int64_t stage_elements);
  Problem problem;
  Program program;
  std::size_t most_sources = 1, most_targets = 1;  // of an action
};

class Slices {
 public:
  Slices(const Plan& plan, std::int64_t most_bytes);  // keeps the plan's place

  bool worth_it() const { return number_ > 1; }  // equal on all ranks
  std::int64_t number() const { return number_; }
  std::int64_t first(std::int64_t slice) const { return slice * each_; }
  std::int64_t each() const { return each_; }  // elements; the last may have fewer
  const Part& part(std::int64_t slice);        // compiled when it is first asked for

 private:
  const Plan& plan_;
  std::int64_t each_ = 0, number_ = 1;
  std::unique_ptr<const Part> full_, tail_;
};

}  // namespace chorale::mapped
