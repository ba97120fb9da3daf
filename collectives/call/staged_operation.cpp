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

class StagedOperation final : public Operation {
 public:
  StagedOperation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator host)
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

  ~StagedOperation() override {
    copy_.reset();
    if (plan_.on_device) device_->release(bounce_.data());
  }

  // Enqueues the copy even if the input is empty. The completion of the copy shows that the device no longer uses the output
  // buffer.
  void await_input(const void* input) override {
    stage_ = Stage::input;
    if (plan_.on_device)
      copy_->fetch(input_, input, input_bytes_);
    else
      copy_->send(input_, input, input_bytes_);
  }

  bool input_is_there() override { return copy_->over(); }

  void start(const Run& run) override {
    ++moved_;
    stage_ = Stage::call;
    result_ = run.output;
    Run here = run;
    here.input = input_;
    here.output = output_;
    inner_->start(here);
  }

  bool progress() override {
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

  std::uint64_t moved() const override { return inner_->moved() + moved_; }

  void examine() override {
    if (stage_ == Stage::call) inner_->examine();
  }

  int awaits() override { return inner_->awaits(); }

  void abandon() noexcept override {
    if (stage_ == Stage::call) inner_->abandon();
  }

  // Only inner_ depends on peers. Before and after inner_ runs, only the copy in flight can still write to a buffer.
  bool may_be_written() noexcept override { return stage_ == Stage::call ? inner_->may_be_written() : !copy_->over(); }
  bool may_be_read() noexcept override { return inner_->may_be_read(); }

 private:
  Plan plan_;
  std::shared_ptr<Memory> device_;
  // Holds the bounce buffer of the input, followed by the bounce buffer of the output. In an in-place call, the two bounce
  // buffers are parts of one vector. bounce_ is declared before inner_, so bounce_ is destroyed after inner_. This order
  // matters because after an error, messages of inner_ can still arrive in bounce_.
  Buffer bounce_;
  std::unique_ptr<Operation> inner_;
  enum class Stage : std::uint8_t { input, call, output } stage_ = Stage::input;
  std::byte *input_ = nullptr, *output_ = nullptr;
  std::int64_t input_bytes_, output_bytes_;
  void* result_ = nullptr;  // the caller's output
  std::unique_ptr<AsyncCopy> copy_;
  std::uint64_t moved_ = 0;
};

}  // namespace

std::unique_ptr<Operation> staged_operation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator host) {
  return std::make_unique<StagedOperation>(group, plan, std::move(device), host);
}

}  // namespace chorale
