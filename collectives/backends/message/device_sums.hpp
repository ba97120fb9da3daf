// Runs the reductions and copies of a schedule on a device, if the buffers are on the device and the library accepts device
// pointers. All reductions and copies are enqueued on one separate stream and polled by events. A message that contains a
// sum is posted once the sum is complete. The host never blocks.
//
//   caller's stream       … [ kernel ]──event              once completed, caller_is_through(): messages may use the buffers
//   stream of all sums    … [ sum of step 3 ]──event──[ sum of step 5 ]──event      in the order of put()
//
// All events are created when the operation is created, one event for each sum or copy. So a run creates no events.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "collectives/backends/message/plan.hpp"
#include "src/math/device_kernels.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

// The device of a transport. All operations of the transport share the device's memory, kernels and stream for sums.
struct DirectDevice {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<void> stream;
  Queue queue() const { return {.device = memory->kernels(), .stream = stream.get()}; }
};
// Returns nothing if the communication library does not accept device pointers, or if Chorale has no kernels for the device.
std::optional<DirectDevice> direct_device(bool library_takes_it, const std::shared_ptr<Memory>& memory);

// Throws if a sum of the plan has more addends than one kernel accepts. Only algorithms that add the data of all ranks in
// one step can have too many addends.
void require_few_addends(const Plan& plan, const MessagePlan& flat);

class DeviceSums {
 public:
  DeviceSums(DirectDevice device, const Plan& plan, const MessagePlan& flat);

  void follow_caller();            // records an event after all work that the caller has enqueued
  bool caller_is_through() const;  // whether the event of follow_caller() has completed
  void put(int step, void* to, std::span<const void* const> addends);  // enqueues the sum or copy of a step
  bool over(int step) const;                                           // whether the sum or copy of a step is complete
  // Call this function when all steps have completed. For an average, divided() enqueues the division, and returns true once
  // the division is complete. For other operators, divided() returns true immediately.
  bool divided(void* output);

 private:
  const MessagePlan& flat_;
  DirectDevice device_;
  Queue queue_;
  std::int64_t divide_count_ = 0;  // 0: no division
  int divide_by_ = 1;
  bool is_dividing_ = false;
  std::shared_ptr<void> mark_;                // event after the caller's work, and later after the division
  std::vector<std::shared_ptr<void>> marks_;  // indexed by step: event after the step's sum or copy; null if there is none
};

}  // namespace chorale
