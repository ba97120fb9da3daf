// Cuts a large call into slices. In an all_reduce, a reduce or a broadcast, each element of the result depends only on the
// same element of the inputs. So the call equals a sequence of calls, one per slice. Ordinary buffers are handled this way:
// a slice copied into symmetric memory is still in the L2 cache when it is used; a whole vector would not be.
//
//   buffers      | slice 0 | slice 1 | slice 2 | … | tail |      ordinary memory; on another rank they may be mapped
//                     ⇅
//   stand-in     |  slice  |                                     symmetric memory: one slice, used for all in turn
#pragma once
#include <memory>

#include "collectives/backends/mapped/program.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

// One unit of execution: a call or one of its slices.
struct Part {
  Part(const Plan& plan, std::int64_t stage_elements);
  Problem problem;
  Program program;
  std::size_t most_sources = 1, most_targets = 1;  // of any action
};

class Slices {
 public:
  Slices(const Plan& plan, std::int64_t most_bytes);  // keeps a reference to the plan

  bool worth_it() const { return number_ > 1; }  // equal on all ranks
  std::int64_t number() const { return number_; }
  std::int64_t first(std::int64_t slice) const { return slice * each_; }
  std::int64_t each() const { return each_; }  // elements per slice; the last may have fewer
  const Part& part(std::int64_t slice);        // compiled at the first request

 private:
  const Plan& plan_;
  std::int64_t each_ = 0, number_ = 1;
  std::unique_ptr<const Part> full_, tail_;
};

}  // namespace chorale::mapped
