// Runs any schedule over a backend that sends messages. A step may begin when the steps that it waits for have completed.
// All steps that may begin are started immediately. Receives start first, so that incoming messages find their buffers.
//
//   start → post receives, sends → local sums and copies → progress: messages over → steps over → post the released steps
//
// A run allocates nothing, and progress() costs O(messages in flight). With a CUDA-aware library, reductions of device
// buffers run on the GPU and are polled (device_sums.hpp). If reductions run on the GPU, a reducing step has completed only
// when the GPU has completed the reduction.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "collectives/backends/message/call_agreement.hpp"
#include "collectives/backends/message/device_sums.hpp"
#include "collectives/backends/message/plan.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

// The interface through which a backend sends and receives the messages of one plan. `message` is an index in the plan's
// list of messages.
class Messenger {
 public:
  virtual ~Messenger() = default;
  virtual void start(const Run& run) = 0;           // a run begins
  virtual bool post(int message, void* place) = 0;  // true: the message is already complete
  virtual std::span<const int> progress() = 0;      // messages that have completed since the last call
  virtual void examine() {}                         // called after a while without progress; throws if it detects an error

  // These functions are called after an error, like abandon(), may_be_written() and may_be_read() in Operation.
  virtual void cancel() noexcept {}                       // cancels unmatched receives, but no sends
  virtual bool is_receiving() noexcept { return false; }  // whether a receive is still in flight
  virtual bool is_sending() noexcept { return false; }    // whether a send is still in flight
};

class MessageOperation final : public Operation {
 public:
  // `device` must have a value if the plan's buffers are on a device.
  MessageOperation(const Plan& plan, MessagePlan flat, std::unique_ptr<Messenger> messenger, CallWatch watch,
                   Allocator workspace, const std::optional<DirectDevice>& device);
  void await_input(const void* input) override;
  bool input_is_there() override { return !sums_ || sums_->caller_is_through(); }
  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return moved_; }
  void examine() override;
  int awaits() override;
  void abandon() noexcept override { messenger_->cancel(); }
  bool may_be_written() noexcept override { return messenger_->is_receiving(); }
  bool may_be_read() noexcept override { return messenger_->is_sending(); }

 private:
  // A queue of steps that may begin. Each step is added to the queue at most once per run, so a plain array suffices.
  struct Line {
    std::vector<int> steps;
    std::size_t head = 0, tail = 0;
    bool any() const { return head < tail; }
    int first() const { return steps[head]; }
    int take() { return steps[head++]; }
    void add(int step) { steps[tail++] = step; }
  };

  void* at(BufferAddress spot) const { return bases_[static_cast<std::size_t>(spot.place)] + spot.byte; }
  FlatStep& flat(int step) { return plan_.steps[static_cast<std::size_t>(step)]; }
  void enqueue(int step);
  void release(Indices steps);
  void begin_all();
  void post(int step);
  void finish(int step);
  bool end_summed();
  void end(int step);
  std::span<const void* const> addends_of(const FlatStep& step);

  MessagePlan plan_;
  std::unique_ptr<DeviceSums> sums_;  // null if the buffers are on the host; otherwise the workspace is on the device too
  // Outlives messenger_, because after an error, messages can still write to the workspace.
  Buffer workspace_;
  std::unique_ptr<Messenger> messenger_;
  CallWatch watch_;
  std::array<std::byte*, 3> bases_{};
  // For each step, the number of steps that must still release it, and the number of its messages that are under way.
  std::vector<int> waits_, under_way_;
  std::vector<std::uint8_t> posted_;  // indexed by message: whether the message is in flight (posted and not completed)
  std::vector<const void*> addends_;
  Line receives_, sends_, locals_, summing_;
  int steps_left_ = 0;
  std::uint64_t moved_ = 0;
};

// Creates a plan's operation. Carrier is a subclass of Messenger. The arguments `line` are passed to the constructor of
// Carrier before the other arguments.
template <class Carrier, class... Line>
std::unique_ptr<Operation> over_messages(CallAgreement& agreement, const Plan& plan, Allocator workspace,
                                         const std::optional<DirectDevice>& device, Line&&... line) {
  MessagePlan flat(plan);
  auto messenger = std::make_unique<Carrier>(line..., agreement, plan, flat.messages);
  CallWatch watch(agreement, plan.signature, flat.peers);
  return std::make_unique<MessageOperation>(plan, std::move(flat), std::move(messenger), std::move(watch), workspace,
                                            device);
}

}  // namespace chorale
