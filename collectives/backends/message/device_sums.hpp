// The sums and copies of a schedule whose buffers are on a device, over a library that takes those itself. They are put on a stream beside the
// caller's and told when they are over by being asked: a message that carries a sum is sent when the sum has been made, and nobody waits.
//
//   the caller's stream   … [ kernel ]──mark┐                                      caller_is_through: messages may touch the buffers
//   the sums' stream                        └ … [ sum of step 3 ]──mark──[ sum of step 5 ]──mark    in the order in which they were put
//
// Marks are made with the operation, one for each sum, so that a run makes nothing.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "collectives/backends/message/plan.hpp"
#include "src/math/device_kernels.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

// What a transport shares among its operations on a device: where they keep what is on its way, who adds, and the stream of all sums.
struct DirectDevice {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<void> stream;
  Queue queue() const { return {.device = memory->kernels(), .stream = stream.get()}; }
};
// None where the library does not take a device's buffers, or nobody computes on it.
std::optional<DirectDevice> direct_device(bool library_takes_it, const std::shared_ptr<Memory>& memory);

// Of so many as one launch takes; few algorithms add those of all ranks at once.
void require_few_addends(const Plan& plan, const MessagePlan& flat);

class DeviceSums {
 public:
  DeviceSums(DirectDevice device, const Plan& plan, const MessagePlan& flat);

  void follow_caller();  // what he has asked of the device so far comes before the run
  bool caller_is_through() const;
  void put(int step, void* to, std::span<const void* const> addends);  // a sum, or a copy
  bool over(int step) const;
  bool divided(void* output);  // when all steps are over: an average is still to be divided; true once it is

 private:
  const MessagePlan& flat_;
  DirectDevice device_;
  Queue queue_;
  std::int64_t divide_count_ = 0;  // 0: nothing is divided
  int divide_by_ = 1;
  bool is_dividing_ = false;
  std::shared_ptr<void> mark_;                // of the caller's place, then of the division
  std::vector<std::shared_ptr<void>> marks_;  // of each step that has a sum
};

}  // namespace chorale
