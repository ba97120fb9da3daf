// An axis whose ranks really communicate. A live axis counts the bytes that the axis's communicator sends, and measures how
// long the rank waits. If there is a trace, the axis records each call in the trace.
#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/trace.hpp"

namespace chorale {

// Not in an anonymous namespace, because Axis::Vote names it as a friend.
class LiveAxis final : public Axis {
 public:
  LiveAxis(std::string name, Communicator group, CommunicationTime& time)
      : Axis(std::move(name), group.rank(), group.size(), time), group_(std::move(group)) {}

  const std::vector<int>& hosts() const override { return group_.hosts(); }
  bool pretends() const override { return false; }
  void record_in(Trace& trace) override { trace_ = &trace; }

  void give_up(const std::exception& why) override {
    if (size() > 1) group_.give_up(why);
  }

  void poll() const override { group_.poll(); }

  std::vector<std::string> exchange(const std::string& mine) override {
    if (size() == 1) return {mine};
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(size()));
    auto length = static_cast<std::int64_t>(mine.size());
    group_.all_gather({&length, 1, DType::i64}, {lengths.data(), size(), DType::i64});
    std::string all(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})), ' ');
    std::string given = mine;
    group_.all_gather({given.data(), length, DType::u8}, {all.data(), static_cast<std::int64_t>(all.size()), DType::u8},
                      lengths);
    std::vector<std::string> texts;
    for (std::size_t first = 0; const std::int64_t count : lengths)
      texts.push_back(
          all.substr(std::exchange(first, first + static_cast<std::size_t>(count)), static_cast<std::size_t>(count)));
    return texts;
  }

  void swap(const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received) override {
    const auto slice = [](const ByteMessage& one) {
      return Slice{one.bytes.data(), static_cast<std::int64_t>(one.bytes.size()), DType::u8};
    };
    std::vector<Request> requests;
    for (const ByteMessage& one : received)
      if (!one.bytes.empty()) requests.push_back(group_.start_recv(slice(one), one.rank));
    for (const ByteMessage& one : sent)
      if (!one.bytes.empty()) requests.push_back(group_.start_send(slice(one), one.rank));
    for (Request& request : requests) request.wait();
  }

  Vote start_vote(bool yes) override {
    Vote vote(yes);
    if (size() > 1) vote.request_ = group_.start_all_reduce({vote.yes_.get(), 1, DType::i32}, Redop::max);
    return vote;
  }

  Pending start_recv(const Tensor& x, int from) override { return message("recv", group_.start_recv(x.slice(), from), x); }

 private:
  void carry_out(const TensorCall& call) override {
    account_for(call, false, [&] { group_.run(call); });
  }

  Pending begin(const TensorCall& call) override {
    Request request;
    const std::int64_t number = account_for(call, true, [&] { request = group_.start(call); });
    return {*this, std::move(request), call.from, call.to, number};
  }

  Pending begin_send(const Tensor& x, int to) override { return message("send", group_.start_send(x.slice(), to), x); }

  void wait_for(Request& request, std::int64_t number) override {
    const double start = now();
    time().wait_begins(start);
    request.wait();
    const double over = now();
    time().wait_ends(over);
    time().call_ends(over);
    if (trace_) trace_->over(number, start, over);
  }

  bool test(Request& request, std::int64_t number) override {
    if (!request.test()) return false;
    wait_for(request, number);
    return true;
  }

  double now() const override { return group_.clock().seconds(); }

  // Runs or starts a call by calling `make`, and counts the call. Returns the call's number in the trace.
  template <class Make>
  std::int64_t account_for(const Call& call, bool started, Make&& make) {
    const double begun = now();
    time().wait_begins(begun);
    const Traffic before = group_.traffic();
    make();
    const Traffic& after = group_.traffic();
    const auto since = [](std::int64_t later, std::int64_t then) { return later < 0 ? -1 : later - then; };
    count(static_cast<std::size_t>(call.what),
          {since(after.bytes_sent, before.bytes_sent), since(after.bytes_crossing, before.bytes_crossing), due_of(call)});
    const double done = now();
    time().wait_ends(done);
    if (!records()) return -1;
    return record({.operation = name_of(call.what),
                   .algorithm = group_.choice(call).algorithm,
                   .dtype = name_of(call.input.dtype),
                   .bytes = std::max(call.input.bytes(), call.output.bytes()),
                   .started = started},
                  begun, done);
  }

  // A message between two ranks needs no algorithm. The time to launch a message is not measured, so the trace shows a
  // launch time of zero.
  Pending message(const char* operation, Request request, const Tensor& x) {
    std::int64_t number = -1;
    if (records()) {
      const double begun = now();
      number = record({.operation = operation,
                       .algorithm = "message",
                       .dtype = name_of(x.dtype()),
                       .bytes = x.bytes(),
                       .message = true,
                       .started = true},
                      begun, begun);
    }
    return {*this, std::move(request), x, x, number};
  }

  // Adds a call of this axis to the trace, with the times at which its launch began and was done.
  std::int64_t record(Trace::Call call, double begun, double done) {
    call.axis = name();
    call.backend = group_.backend();
    call.begins = begun;
    call.launched = call.waited = call.ends = done;
    return trace_->add(std::move(call));
  }

  bool records() const { return trace_ && trace_->on(); }

  Communicator group_;
  Trace* trace_ = nullptr;
};

std::unique_ptr<Axis> live_axis(std::string name, Communicator group, CommunicationTime& time) {
  return std::make_unique<LiveAxis>(std::move(name), std::move(group), time);
}

}  // namespace chorale
