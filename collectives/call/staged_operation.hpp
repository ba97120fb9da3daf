// A call on buffers that the transport cannot reach. For nccl these are host buffers. For shm they are device buffers, and
// so for ucx and mpi unless their library is CUDA-aware. The input is copied to a bounce buffer, a buffer that the transport
// reaches. The call runs on bounce buffers, and the result is copied to the caller's output.
//
//   device   input ─┐ fetch                            send ┌─▶ output
//   host            └─▶ bounce buffer ── the operation ──▶ bounce buffer ┘           the reverse for nccl
//
// Bounce buffers are allocated once per operation, in the transport's own memory. For shm this is mapped memory, so peers
// read bounce buffers directly. Host bounce buffers are pinned. The copy of the input waits for all device work that was
// enqueued before the call. The output is complete once progress() returns true. Copies are polled like messages, so nothing
// blocks on them (src/memory/async_copy.hpp). A library matches native collectives by their order. So a call starts only
// after all earlier calls of its group (communicator_state.cpp), even if the copy of its input completed first.
//
// Cost: each byte of input and output is copied once between host and device, in addition to the operation's cost. The
// communicator cuts a large all_reduce, reduce or broadcast into pieces and has several in flight (communicator_state.cpp).
// So copies of one piece overlap messages of another.
#pragma once
#include <memory>

#include "collectives/transport/transport.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

constexpr std::int64_t staged_piece_bytes = 1 << 20;

class StagedOperation final : public Operation {
 public:
  // `plan` says where the caller's buffers are. `device` is the memory of the device on which either the buffers or the
  // bounce buffers lie.
  StagedOperation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator host);
  ~StagedOperation() override;

  void await_input(const void* input) override;
  bool input_is_there() override { return copy_->over(); }
  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return inner_->moved() + moved_; }
  void examine() override;
  int awaits() override { return inner_->awaits(); }
  void abandon() noexcept override;
  bool may_be_written() noexcept override;
  bool may_be_read() noexcept override { return inner_->may_be_read(); }

 private:
  Plan plan_;
  std::shared_ptr<Memory> device_;
  // Holds the bounce buffers of input and output, one after the other; in place, they share one vector. Declared before
  // inner_, so destroyed after it: after an error, messages of inner_ may still arrive here.
  Buffer bounce_;
  std::unique_ptr<Operation> inner_;
  enum class Stage : std::uint8_t { input, call, output } stage_ = Stage::input;
  std::byte *input_ = nullptr, *output_ = nullptr;
  std::int64_t input_bytes_, output_bytes_;
  void* result_ = nullptr;  // the caller's output
  std::unique_ptr<AsyncCopy> copy_;
  std::uint64_t moved_ = 0;
};

}  // namespace chorale
