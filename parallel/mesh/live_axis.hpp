// An axis whose ranks really communicate. A live axis counts the bytes that the axis's communicator sends, and measures how
// long the rank waits. If there is a trace, the axis records each call in the trace.
#pragma once
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/trace.hpp"

namespace chorale {

class LiveAxis final : public Axis {
 public:
  LiveAxis(std::string name, Communicator group, CommunicationTime& time);

  const std::vector<int>& hosts() const override { return group_.hosts(); }
  bool pretends() const override { return false; }
  void record_in(Trace& trace) override { trace_ = &trace; }
  void give_up(const std::exception& why) override;
  void poll() const override { group_.poll(); }
  std::vector<std::string> exchange(const std::string& mine) override;
  void swap(const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received) override;
  Vote start_vote(bool yes) override;
  Pending start_recv(const Tensor& x, int from) override;

 private:
  void carry_out(const TensorCall& call) override;
  Pending begin(const TensorCall& call) override;
  Pending begin_send(const Tensor& x, int to) override;
  void wait_for(Request& request, std::int64_t number) override;
  bool test(Request& request, std::int64_t number) override;
  double now() const override { return group_.clock().seconds(); }

  // Runs or starts a call by calling `make`, and counts the call. Returns the call's number in the trace.
  template <class Make>
  std::int64_t account_for(const Call& call, bool started, Make&& make);
  Pending message(const char* operation, Request request, const Tensor& x);
  std::int64_t record(Trace::Call call, double begun, double done);
  bool records() const { return trace_ && trace_->on(); }

  Communicator group_;
  Trace* trace_ = nullptr;
};

}  // namespace chorale
