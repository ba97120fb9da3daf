// The reductions and copies of a schedule whose buffers are on a device, with a library that accepts device pointers. All of
// them are enqueued on one separate stream and polled through events. A message that contains a sum is posted once the sum
// is complete. The host never blocks.
//
//   caller's stream       … [ kernel ]──event              once completed, caller_is_through(): messages may use the buffers
//   stream of all sums    … [ sum of step 3 ]──event──[ sum of step 5 ]──event      in the order of put()
//
// All events are created together with the operation, one for each sum or copy, so a run creates none.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "collectives/backends/message/plan.hpp"
#include "src/math/device_kernels.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

// The device of a transport. All operations of the transport share its memory for workspaces, its kernels and its stream of
// sums.
struct DirectDevice {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<void> stream;
  Queue queue() const { return {.device = memory->kernels(), .stream = stream.get()}; }
};
// Empty if the library does not accept device pointers, or there are no kernels for the device.
std::optional<DirectDevice> direct_device(bool library_takes_it, const std::shared_ptr<Memory>& memory);

// Throws if a sum of the plan has more addends than one kernel accepts. This can happen only with the few algorithms that
// add the data of all ranks at once.
void require_few_addends(const Plan& plan, const MessagePlan& flat);

class DeviceSums {
 public:
  DeviceSums(DirectDevice device, const Plan& plan, const MessagePlan& flat);

  void follow_caller();            // records an event after all work that the caller has enqueued so far
  bool caller_is_through() const;  // whether that event has completed
  void put(int step, void* to, std::span<const void* const> addends);  // enqueues the sum or copy of a step
  bool over(int step) const;                                           // whether it has completed
  // Call this when all steps are over. For an average, enqueues the division; true once it has completed.
  bool divided(void* output);

 private:
  const MessagePlan& flat_;
  DirectDevice device_;
  Queue queue_;
  std::int64_t divide_count_ = 0;  // 0: no division
  int divide_by_ = 1;
  bool is_dividing_ = false;
  std::shared_ptr<void> mark_;                // event after the caller's work, later after the division
  std::vector<std::shared_ptr<void>> marks_;  // by step: event after its sum or copy; null if the step has neither
};

}  // namespace chorale
