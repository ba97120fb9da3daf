// Splits a large call into slices. In an all_reduce, a reduce or a broadcast, each element of the result depends only on the
// same element of the inputs. So the call equals a sequence of calls, one per slice. A call is split if a rank's buffers are
// in ordinary memory, which peers cannot map. Ordinary buffers are copied through a bounce buffer in symmetric memory. A
// slice is still in the L2 cache when peers read the slice. A complete large vector would not fit into the L2 cache.
//
//   buffers       | slice 0 | slice 1 | slice 2 | … | tail |      ordinary memory on at least one rank
//                      ⇅
//   bounce buffer |  slice  |                                     symmetric memory, reused by every slice
#pragma once
#include <memory>

#include "collectives/backends/mapped/program.hpp"
#include "collectives/transport/transport.hpp"

namespace chorale::mapped {

// A part of a call: either the complete call or one slice of the call.
struct CallPart {
  explicit CallPart(const Plan& plan) : CallPart(plan, schedules_of(plan)) {}
  CallPart(const Plan& plan, const std::vector<Schedule>& ranks);
  Problem problem;
  Program program;
  std::size_t most_sources = 1, most_targets = 1;  // the maximum numbers of sources and of targets of an action
};

class Slices {
 public:
  Slices(const Plan& plan, std::int64_t most_bytes);  // keeps a reference to the plan

  bool worth_it() const { return number_ > 1; }    // whether the call has several slices; equal on all ranks
  std::int64_t number() const { return number_; }  // number of slices
  std::int64_t first(std::int64_t slice) const { return slice * each_; }
  std::int64_t each() const { return each_; }  // elements per slice; the last slice may be shorter
  const CallPart& part(std::int64_t slice);    // compiles the part when it is first requested

 private:
  const Plan& plan_;
  std::int64_t each_ = 0, number_ = 1;
  std::unique_ptr<const CallPart> full_, tail_;
};

}  // namespace chorale::mapped
