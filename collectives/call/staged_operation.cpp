#include "collectives/call/staged_operation.hpp"

#include <algorithm>
#include <utility>

#include "src/base/round_up.hpp"

namespace chorale {
namespace {

constexpr std::int64_t cache_line = 64;

// Returns the plan of the same call on the bounce buffers. The inner operation does not divide averages; the division is
// done on the host.
Plan other_side(Plan plan) {
  plan.on_device = !plan.on_device;
  plan.divide = false;
  return plan;
}

}  // namespace

StagedOperation::StagedOperation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator host)
    : plan_(plan), device_(std::move(device)), inner_(group.prepare(other_side(plan))), copy_(device_->async_copy()) {
  const Problem& p = plan_.problem;
  const std::int64_t width = size_of(plan_.dtype);
  input_bytes_ = p.input_count() * width;
  output_bytes_ = p.output_count() * width;
  const std::int64_t behind = p.in_place ? p.output_home() * width : round_up(input_bytes_, cache_line);
  const std::int64_t before = p.in_place ? p.input_home() * width : 0;
  const std::int64_t vector = p.in_place ? p.blocks.total() * width : 0;
  bounce_ = host.allocate(std::max({vector, before + input_bytes_, behind + output_bytes_}), Category::comm);
  if (plan_.on_device) device_->pin(bounce_.data(), bounce_.bytes());
  input_ = static_cast<std::byte*>(bounce_.data()) + before;
  output_ = static_cast<std::byte*>(bounce_.data()) + behind;
}

StagedOperation::~StagedOperation() {
  copy_.reset();
  if (plan_.on_device) device_->release(bounce_.data());
}

// Enqueues the copy even if the input is empty. The completion of the copy shows that the device no longer uses the output
// buffer.
void StagedOperation::await_input(const void* input) {
  stage_ = Stage::input;
  if (plan_.on_device)
    copy_->fetch(input_, input, input_bytes_);
  else
    copy_->send(input_, input, input_bytes_);
}

void StagedOperation::start(const Run& run) {
  ++moved_;
  stage_ = Stage::call;
  result_ = run.output;
  Run here = run;
  here.input = input_;
  here.output = output_;
  inner_->start(here);
}

bool StagedOperation::progress() {
  if (stage_ == Stage::output) return copy_->over();
  if (!inner_->progress()) return false;
  if (output_bytes_ == 0) return true;
  ++moved_;
  stage_ = Stage::output;
  if (plan_.on_device && plan_.divide) divide(plan_.dtype, output_, plan_.problem.output_count(), plan_.problem.size);
  if (plan_.on_device)
    copy_->send(result_, output_, output_bytes_);
  else
    copy_->fetch(result_, output_, output_bytes_);
  return copy_->over();
}

void StagedOperation::abandon() noexcept {
  if (stage_ == Stage::call) inner_->abandon();
}

// Only inner_ depends on peers. Before and after inner_ runs, only the copy in flight can still write to a buffer.
bool StagedOperation::may_be_written() noexcept { return stage_ == Stage::call ? inner_->may_be_written() : !copy_->over(); }

void StagedOperation::examine() {
  if (stage_ == Stage::call) inner_->examine();
}

}  // namespace chorale
