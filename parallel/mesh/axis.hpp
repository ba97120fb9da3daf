// One axis of the mesh, from the view of one rank. The axis is a group: this rank and all ranks that differ from this rank
// only in their coordinate on the axis. Parallel strategies call collectives on axes. Each axis counts this rank's calls and
// the bytes that this rank sends. The waiting time is measured for all axes together.
//
//                 Axis ── live_axis.cpp        a communicator: sends, measures, and records calls in a trace
//                      └─ pretended_axis.cpp   no peers: counts the bytes a live axis would send, and writes a script
//
// Live axes and simulated axes (PretendedAxis) choose algorithms with the same code (choice/decision.hpp). A plan
// (plan/plan.hpp) runs the real code of a training step on simulated axes and on phantom tensors, which have shapes but no
// memory. So the plan's predictions must equal the measured counts exactly.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <chorale/plan.hpp>
#include "collectives/call/communicator.hpp"
#include "parallel/mesh/byte_message.hpp"
#include "parallel/mesh/communication_time.hpp"
#include "src/memory/tensor.hpp"

namespace chorale {

class Script;
class Selector;
class Trace;

// The numbers of rows that the ranks of a group send to each other. Element r · size + s is the number of rows from rank r
// to rank s.
using RowsBetween = std::vector<std::int64_t>;

class Axis {
 public:
  // A started call. The Pending object keeps the tensors of the call alive until wait() returns.
  class [[nodiscard]] Pending {
   public:
    Pending() = default;
    Pending(Axis& axis, Request request, const Tensor& input, const Tensor& output, std::int64_t number);
    Pending(Pending&&) = default;
    Pending& operator=(Pending&& other) noexcept;  // swaps the two calls
    void wait();
    bool test();  // makes progress; true once the call is complete

   private:
    Axis* axis_ = nullptr;
    Tensor input_, output_;  // declared before request_, whose destructor waits for the call; the call uses the tensors
    Request request_;
    std::int64_t number_ = -1;  // index of the call in the trace or in the script; −1 if the call is in neither
  };

  virtual ~Axis() = default;
  Axis(const Axis&) = delete;

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const std::vector<int>& hosts() const = 0;  // the host of each rank, as in Problem::hosts
  virtual bool pretends() const = 0;
  const Account& account() const { return account_; }
  CommunicationTime& time() const { return time_; }
  void clear_account() { account_ = {}; }
  // A live axis records its calls in `trace`. A simulated axis (PretendedAxis) writes its calls and their predicted times to
  // `script`. A live axis ignores write_in(), and a simulated axis ignores record_in(). The trace and the script must
  // outlive all calls.
  virtual void record_in(Trace&) {}
  virtual void write_in(Script&) {}
  virtual void give_up(const std::exception&) {}  // tells the peers that this rank failed, so that they stop waiting
  virtual void poll() const {}                    // progresses all calls in flight, on every axis

  // Gathers one string from every rank, in rank order. A simulated axis returns this rank's string for every rank.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  // Sends and receives all these messages at once. Both ranks of a message must call this function, with the messages
  // between them in the same order.
  virtual void swap(const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received) = 0;
  // A yes-or-no vote of all ranks. The start of a vote does not wait for other ranks. The account counts no exchanges,
  // messages of swap() or votes.
  class Vote {
   public:
    explicit Vote(bool yes) : yes_(std::make_unique<std::int32_t>(yes)) {}
    bool any();  // whether any rank said yes; waits until all ranks have voted

   private:
    friend class LiveAxis;
    std::unique_ptr<std::int32_t> yes_;  // declared before request_, whose destructor waits for the call
    Request request_;
  };
  virtual Vote start_vote(bool yes) { return Vote(yes); }

  // In these calls all blocks have equal size, so the count of the full tensor is a multiple of the number of ranks. A call
  // is in place if `block` is a view of this rank's block of the full tensor.
  void all_reduce(const Tensor& x, Redop op = Redop::sum) { run({Collective::all_reduce, x, x, op}); }
  void reduce_scatter(const Tensor& input, const Tensor& block) { run({Collective::reduce_scatter, input, block}); }
  void all_gather(const Tensor& block, const Tensor& output) { run({Collective::all_gather, block, output}); }
  void broadcast(const Tensor& x, int root) { run({Collective::broadcast, x, x, Redop::sum, root}); }
  Pending start_all_reduce(const Tensor& x, Redop op = Redop::sum) { return start({Collective::all_reduce, x, x, op}); }
  Pending start_reduce_scatter(const Tensor& input, const Tensor& block) {
    return start({Collective::reduce_scatter, input, block});
  }
  Pending start_all_gather(const Tensor& block, const Tensor& output) {
    return start({Collective::all_gather, block, output});
  }
  // The block of rank r has rows[r] rows.
  void reduce_scatter(const Tensor& input, const Tensor& block, const std::vector<std::int64_t>& rows) {
    run_uneven({Collective::reduce_scatter, input, block}, rows);
  }
  void all_gather(const Tensor& block, const Tensor& output, const std::vector<std::int64_t>& rows) {
    run_uneven({Collective::all_gather, block, output}, rows);
  }
  // `input` holds the rows for rank 0, then the rows for rank 1, and so on. `output` gets the rows from rank 0, then the
  // rows from rank 1, and so on. All ranks pass the same `rows`, even a rank that neither sends nor receives rows.
  void all_to_all(const Tensor& input, const Tensor& output, const RowsBetween& rows) {
    const Sizes sizes = sizes_of(input, rows);
    run({input, output, sizes});
  }
  Pending start_all_to_all(const Tensor& input, const Tensor& output, const RowsBetween& rows) {
    const Sizes sizes = sizes_of(input, rows);
    return start({input, output, sizes});
  }
  Pending start_send(const Tensor& x, int to);
  virtual Pending start_recv(const Tensor& x, int from) = 0;

 protected:
  // `time` is shared by all axes of the rank and must outlive the axis.
  Axis(std::string name, int rank, int size, CommunicationTime& time)
      : name_(std::move(name)), rank_(rank), size_(size), time_(time) {}

  // The counts of an all_to_all, in elements.
  struct Sizes {
    std::vector<std::int64_t> given, taken, everybodys;  // sent by this rank, received by this rank, sent by all ranks
  };
  // A call, and the tensors that hold its buffers. Phantom buffers have no addresses, so the tensors' storage shows whether
  // the call is in place.
  struct TensorCall : Call {
    TensorCall(Collective what, const Tensor& input_tensor, const Tensor& output_tensor, Redop op = Redop::sum, int root = 0)
        : Call{what, slice_of(input_tensor), slice_of(output_tensor), op, root}, from(input_tensor), to(output_tensor) {}
    TensorCall(const Tensor& input_tensor, const Tensor& output_tensor, const Sizes& sizes)
        : TensorCall(Collective::all_to_all, input_tensor, output_tensor) {
      counts = sizes.given;
      taken = sizes.taken;
      everybodys = sizes.everybodys;
    }
    static Slice slice_of(const Tensor& x) { return x ? x.slice() : Slice{}; }
    const Tensor &from, &to;
  };
  std::int64_t due_of(const Call& call) const;  // Sent::due
  void count(std::size_t operation, const Sent& sent) { account_.add(operation, sent); }

 private:
  // These functions carry out and count calls that need other ranks.
  virtual void carry_out(const TensorCall& call) = 0;
  virtual Pending begin(const TensorCall& call) = 0;
  virtual Pending begin_send(const Tensor& x, int to) = 0;
  // These functions wait for a started call, or test whether the call is complete. `number`: the index of the call in the
  // trace or in the script.
  virtual void wait_for(Request& request, std::int64_t number) = 0;
  virtual bool test(Request& request, std::int64_t number) = 0;
  virtual double now() const = 0;

  Sizes sizes_of(const Tensor& input, const RowsBetween& rows) const;
  void run(const TensorCall& call);
  void run_uneven(TensorCall call, const std::vector<std::int64_t>& rows);
  Pending start(const TensorCall& call);
  // Handles calls that need no communication: empty calls, and calls on a group of one rank, which copy the input to the
  // output. Returns false for all other calls.
  bool done_alone(const Call& call);

  std::string name_;
  int rank_, size_;
  Account account_;
  CommunicationTime& time_;
};

// live_axis.cpp
std::unique_ptr<Axis> live_axis(std::string name, Communicator group, CommunicationTime& time);
// pretended_axis.cpp. A group of this rank only. Calls on this group copy their input, or do nothing.
std::unique_ptr<Axis> pretended_axis(std::string name, CommunicationTime& time);
// The axis from the view of rank `rank` of `size` ranks. `hosts`: the host of each rank, as in Problem::hosts. `switches`:
// the leaf switch of each rank; if it is empty, all ranks are under one leaf switch.
std::unique_ptr<Axis> pretended_axis(std::string name, int rank, int size, std::vector<int> hosts, std::vector<int> switches,
                                     std::string backend, const std::string& algorithm,
                                     std::shared_ptr<const Selector> selector, CommunicationTime& time);

// Gathers one value from every rank, in rank order. All ranks must call this function.
template <class T>
std::vector<T> exchange(Axis& axis, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const std::string& bytes : axis.exchange({reinterpret_cast<const char*>(&mine), sizeof mine}))
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(T));
  return all;
}

}  // namespace chorale
