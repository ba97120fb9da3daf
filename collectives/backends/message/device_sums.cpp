#include "collectives/backends/message/device_sums.hpp"

#include "src/base/error.hpp"

namespace chorale {

std::optional<DirectDevice> direct_device(bool library_takes_it, const std::shared_ptr<Memory>& memory) {
  if (!library_takes_it || !memory->kernels()) return {};
  return DirectDevice{memory, memory->kernels()->stream()};
}

void require_few_addends(const Plan& plan, const MessagePlan& flat) {
  require(flat.most_addends <= static_cast<int>(most_addends),
          "a sum on a device takes at most {} addends, but {} has a sum of {}", most_addends, plan.words, flat.most_addends);
}

DeviceSums::DeviceSums(DirectDevice device, const Plan& plan, const MessagePlan& flat)
    : flat_(flat), device_(std::move(device)), queue_(device_.queue()), marks_(flat.steps.size()) {
  require_few_addends(plan, flat);
  if (plan.divide) {
    divide_count_ = plan.problem.output_count();
    divide_by_ = plan.problem.size;
  }
  mark_ = queue_.device->mark(queue_);
  for (std::size_t s = 0; s < marks_.size(); ++s)
    if (flat.steps[s].kind != Kind::send && flat.steps[s].kind != Kind::recv) marks_[s] = queue_.device->mark(queue_);
}

void DeviceSums::follow_caller() {
  is_dividing_ = false;
  queue_.device->move_mark(mark_.get(), {.device = queue_.device});
}

bool DeviceSums::caller_is_through() const { return queue_.device->passed(mark_.get()); }

void DeviceSums::put(int s, void* to, std::span<const void* const> addends) {
  const auto index = static_cast<std::size_t>(s);
  const FlatStep& step = flat_.steps[index];
  if (step.kind == Kind::copy)
    queue_.device->copy(to, addends[0], step.count * size_of(flat_.dtype), queue_);
  else
    queue_.device->reduce(flat_.op, flat_.dtype, to, addends, step.count, queue_);
  queue_.device->move_mark(marks_[index].get(), queue_);
}

bool DeviceSums::over(int step) const { return queue_.device->passed(marks_[static_cast<std::size_t>(step)].get()); }

bool DeviceSums::divided(void* output) {
  if (divide_count_ == 0) return true;
  if (!is_dividing_) {
    is_dividing_ = true;
    queue_.device->divide(flat_.dtype, output, divide_count_, divide_by_, queue_);
    queue_.device->move_mark(mark_.get(), queue_);
  }
  return queue_.device->passed(mark_.get());
}

}  // namespace chorale
