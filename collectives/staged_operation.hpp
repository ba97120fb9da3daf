// A call on buffers that the transport does not reach: on a device for shm, ucx and mpi, on the host for nccl. The input is
// copied to stand-ins that the transport reaches, the call runs there, and its result is copied back. It serves any backend.
//
//   device   input ─┐ fetch                            send ┌─▶ output
//   host            └─▶ stand-in ── the operation ──▶ stand-in ┘           the reverse for nccl
//
// Stand-ins are allocated once per operation, in the transport's own memory; shm maps it, so peers read them directly. Host
// stand-ins are pinned. The copies include the results of all device work enqueued before the call. The output is complete
// once progress() returns true. Copies are polled like messages, so nothing blocks on them (src/memory/async_copy.hpp).
// Native collectives are matched by order. So a call starts only after all earlier calls of its group
// (communicator_state.cpp), however fast its own copy was.
//
// Cost: each byte of input and output is copied once between host and device, in addition to the operation's cost. A large
// all_reduce, reduce or broadcast arrives here in pieces, with several in flight (communicator_state.cpp). So copies of one
// piece overlap messages of another.
#pragma once
#include <memory>

#include "collectives/backends/transport.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

constexpr std::int64_t staged_piece_bytes = 1 << 20;

class StagedOperation final : public Operation {
 public:
  // `plan` says where the caller's buffers are. `device` is the device's memory, whether buffers or stand-ins lie there.
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
  // The input, then the output; in place they are one vector. Declared before the operation, because messages for the
  // operation may still arrive here after an error.
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
