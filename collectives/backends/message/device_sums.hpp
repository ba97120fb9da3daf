// The reductions and copies of a schedule whose buffers are on a device, with a library that accepts device pointers. They
// are enqueued on a stream of their own and polled through events. A message that carries a sum is posted once the sum is
// complete; the host never blocks.
//
//   the caller's stream   … [ kernel ]──event┐                     caller_is_through(): messages may touch the buffers
//   the sums' stream                         └ … [ sum of step 3 ]──event──[ sum of step 5 ]──event   in the order of put()
//
// Events are created with the operation, one for each sum or copy, so a run creates nothing.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "collectives/backends/message/plan.hpp"
#include "src/math/device_kernels.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

// What a transport shares among its operations on a device: memory for workspaces, the kernels, and the stream of all sums.
struct DirectDevice {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<void> stream;
  Queue queue() const { return {.device = memory->kernels(), .stream = stream.get()}; }
};
// Empty if the library does not accept device pointers, or there are no kernels for the device.
std::optional<DirectDevice> direct_device(bool library_takes_it, const std::shared_ptr<Memory>& memory);

// Rejects plans whose sums have too many addends for one launch. Few algorithms add all ranks' data at once.
void require_few_addends(const Plan& plan, const MessagePlan& flat);

class DeviceSums {
 public:
  DeviceSums(DirectDevice device, const Plan& plan, const MessagePlan& flat);

  void follow_caller();  // the run comes after everything that the caller has enqueued so far
  bool caller_is_through() const;
  void put(int step, void* to, std::span<const void* const> addends);  // enqueues a sum or a copy
  bool over(int step) const;
  bool divided(void* output);  // call when all steps are over. Divides an average; true once it is divided

 private:
  const MessagePlan& flat_;
  DirectDevice device_;
  Queue queue_;
  std::int64_t divide_count_ = 0;  // 0: no division
  int divide_by_ = 1;
  bool is_dividing_ = false;
  std::shared_ptr<void> mark_;                // event of the caller's work, then of the division
  std::vector<std::shared_ptr<void>> marks_;  // event of each step that has a sum or a copy
};

}  // namespace chorale
