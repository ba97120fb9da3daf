// A call whose buffers lie where the transport does not reach: on a device for shm, ucx and mpi, on the host for nccl. They are copied into
// stand-ins that it does reach, the call is made there, and what came of it is copied back. So one file serves every backend.
//
//   device   input ─┐ fetch                            send ┌─▶ output
//   host            └─▶ stand-in ── the operation ──▶ stand-in ┘           for nccl the other way round
//
// Stand-ins are made once for an operation, in the transport's own memory (of shm: mapped, so that peers read them directly), and those on
// the host are pinned. What was asked of the device before the call is in the copies, and the output is there when progress() says so. Nobody
// waits for a copy: it is polled, as messages are (src/memory/async_copy.hpp). A library's own collectives are matched by their order, so a call
// starts only when those before it in its group have (communicator_state.cpp), however fast its own copy was.
//
// Cost: each byte of input and output crosses to the device once, beside what the operation costs. A large all_reduce, reduce or broadcast
// arrives here in pieces, several in flight at once (communicator_state.cpp): one is copied while the messages of another travel.
#pragma once
#include <memory>

#include "collectives/backends/transport.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

constexpr std::int64_t staged_piece_bytes = 1 << 20;

class StagedOperation final : public Operation {
 public:
  // `plan` tells where the caller's buffers are; `device` is the memory of the device, on whichever side that is.
  StagedOperation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator stand_ins);
  ~StagedOperation() override;

  void await_input(const void* input) override;
  bool input_is_there() override { return copy_->over(); }
  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return inner_->moved() + moved_; }
  void examine() override;
  void abandon() noexcept override;
  bool may_be_written() noexcept override;
  bool may_be_read() noexcept override { return inner_->may_be_read(); }

 private:
  Plan plan_;
  std::shared_ptr<Memory> device_;
  // Of both, one behind the other; in place they are one vector. Before the operation, whose messages may still come for it after an error.
  Buffer stand_in_;
  std::unique_ptr<Operation> inner_;
  enum class Stage : std::uint8_t { input, call, output } stage_ = Stage::input;
  std::byte *input_ = nullptr, *output_ = nullptr;
  std::int64_t input_bytes_, output_bytes_;
  void* result_ = nullptr;  // the caller's output
  std::unique_ptr<AsyncCopy> copy_;
  std::uint64_t moved_ = 0;
};

}  // namespace chorale
