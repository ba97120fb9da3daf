// One axis of the mesh as a rank sees it: the group of ranks that differ only in their coordinate on this axis.
// Strategies call collectives on axes. Each axis counts the calls and the bytes that this rank sent. The time spent
// waiting is counted for all axes together.
//
// An axis can also pretend: it has no peers and sends nothing, but counts the bytes that a real axis would send.
// Pretending axes and real communicators choose algorithms with the same code (decision.hpp). So a plan (plan.hpp) runs
// the real code of a training step on phantom tensors, which have shapes but no memory. The plan's predictions must equal
// the measured counts exactly.
#pragma once
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/choice/decision.hpp"
#include "parallel/mesh/call_price.hpp"
#include "parallel/mesh/communication_time.hpp"
#include "parallel/mesh/script.hpp"
#include "parallel/mesh/trace.hpp"
#include "src/memory/tensor.hpp"

namespace chorale {

// The operations that an axis counts: every collective, and messages from one rank to another.
inline constexpr std::size_t messages = static_cast<std::size_t>(Collective::barrier) + 1;
inline constexpr std::size_t operations = messages + 1;
const char* operation_name(std::size_t operation);

struct Account {
  struct Entry {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;     // sent by this rank; −1: unknown, because a library's own algorithm sent them
    std::int64_t crossing = 0;  // of these, to ranks on other hosts; −1: unknown
    std::int64_t due = 0;       // of an all_to_all: the bytes that by the counts of its rows leave this rank
    bool operator==(const Entry&) const = default;
  };
  std::array<Entry, operations> entries{};
};
using Accounts = std::map<std::string, Account>;  // key: the name of the axis

// How many rows each rank of a group sends to each other one: rank r sends [r · size + s] rows to rank s.
using RowsBetween = std::vector<std::int64_t>;

class Axis {
 public:
  // A call that has been started. It keeps the tensors of the call alive until wait() returns.
  class [[nodiscard]] Pending {
   public:
    Pending() = default;
    Pending(Axis& axis, Request request, const Tensor& input, const Tensor& output, std::int64_t call);
    Pending(Pending&&) = default;
    Pending& operator=(Pending&& other) noexcept;  // swaps the two calls
    void wait();
    bool test();  // makes progress; true once the call is complete

   private:
    Axis* axis_ = nullptr;
    Tensor input_, output_;  // declared before request_, whose destructor waits for the call and still needs the tensors
    Request request_;
    std::int64_t call_ = -1;  // the call's number in the trace, or in the script of a pretending axis
  };

  // `time` belongs to the rank and must outlive the axis.
  Axis(std::string name, Communicator group, CommunicationTime& time);
  // An axis that pretends to be rank `rank` of `size` ranks, which are on these hosts (Problem::hosts).
  Axis(std::string name, int rank, int size, std::vector<int> hosts, std::string backend, const std::string& algorithm,
       std::shared_ptr<const Selector> selector, CommunicationTime& time);

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::vector<int>& hosts() const { return group_ ? group_.hosts() : hosts_; }  // of the ranks: Problem::hosts
  bool pretends() const { return !group_; }
  const Account& account() const { return account_; }
  CommunicationTime& time() const { return *time_; }
  void clear_account() { account_ = {}; }
  void write_in(Trace& trace) { trace_ = &trace; }  // records calls in `trace`, which must outlive all calls
  // A pretending axis notes its calls, with their prices, in `script`, which must outlive all calls.
  void write_in(Script& script) { script_ = &script, foreseen_.clear(); }  // known calls have no price yet
  void give_up(const std::exception& why) {  // tells the peers that this rank failed, so that they stop waiting
    if (!pretends() && size_ > 1) group_.give_up(why);
  }
  std::vector<std::string> exchange(const std::string& mine);  // the texts of all ranks, in rank order
  // Asks all ranks a question without waiting for them. Neither an exchange nor a vote is part of the account.
  class Vote {
   public:
    bool any();  // whether any rank said yes; waits until all ranks have voted

   private:
    friend class Axis;
    std::unique_ptr<std::int32_t> yes_;  // declared before request_, whose destructor waits for the call
    Request request_;
  };
  Vote start_vote(bool yes);

  // All blocks have equal size: the count of the whole tensor is a multiple of the number of ranks. A call is in place if
  // `block` is a view of this rank's block of the other tensor.
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
  // With `rows`, the block of rank r has rows[r] rows. Equal blocks need no `rows`.
  void reduce_scatter(const Tensor& input, const Tensor& block, const std::vector<std::int64_t>& rows) {
    run_uneven({Collective::reduce_scatter, input, block}, rows);
  }
  void all_gather(const Tensor& block, const Tensor& output, const std::vector<std::int64_t>& rows) {
    run_uneven({Collective::all_gather, block, output}, rows);
  }
  // `input` has the rows for rank 0, then those for rank 1, and so on; `output` gets the rows from rank 0, then those from
  // rank 1, and so on. All ranks pass the same `rows`, also a rank that neither sends nor receives a row.
  void all_to_all(const Tensor& input, const Tensor& output, const RowsBetween& rows) {
    const Sizes sizes = sizes_of(input, rows);
    run({input, output, sizes});
  }
  Pending start_all_to_all(const Tensor& input, const Tensor& output, const RowsBetween& rows) {
    const Sizes sizes = sizes_of(input, rows);
    return start({input, output, sizes});
  }
  void poll() const {  // progresses all calls in flight, on every axis
    if (group_) group_.poll();
  }
  Pending start_send(const Tensor& x, int to);
  Pending start_recv(const Tensor& x, int from);

 private:
  // The counts of an all_to_all, in elements.
  struct Sizes {
    std::vector<std::int64_t> given, taken, everybodys;  // this rank sends, this rank receives, all ranks send
  };
  Sizes sizes_of(const Tensor& input, const RowsBetween& rows) const;
  // A call, and the tensors that hold its buffers. Phantom buffers have no addresses, so the tensors' storage shows whether
  // the call is in place.
  struct TensorCall : Call {
    TensorCall(Collective what, const Tensor& input_tensor, const Tensor& output_tensor, Redop op = Redop::sum, int root = 0)
        : Call{what, slice_of(input_tensor), slice_of(output_tensor), op, root}, from(input_tensor), to(output_tensor) {}
    TensorCall(const Tensor& input_tensor, const Tensor& output_tensor, const Sizes& sizes)
        : TensorCall(Collective::all_to_all, input_tensor, output_tensor) {
      counts = sizes.given, taken = sizes.taken, everybodys = sizes.everybodys;
    }
    static Slice slice_of(const Tensor& x) { return x ? x.slice() : Slice{}; }
    const Tensor &from, &to;
  };
  void run(const TensorCall& call);
  void run_uneven(TensorCall call, const std::vector<std::int64_t>& rows);
  Pending start(const TensorCall& call);
  // Handles calls that need no communication: empty calls, and calls on a group of one rank, which copy input to output.
  // Returns false for all other calls.
  bool done_alone(const Call& call);
  struct Sent {
    std::int64_t bytes = 0, crossing = 0, due = 0;
  };
  std::int64_t due_of(const Call& call) const;
  // The bytes that this rank would send in a call, and the price of the call. Without a script it has no price.
  struct Foreseen {
    Sent sent;
    CallPrice price;
    CallVolume volume;
  };
  const Foreseen& foreseen(const TensorCall& call);
  int pretend(const TensorCall& call);  // returns the call's number in the script; −1: there is no script
  template <class Do>
  std::int64_t account_for(const Call& call, bool started, Do&& carry_out);  // returns the call's number in the trace
  Pending message(const char* operation, Request request, const Tensor& x);
  Pending pretend(const Tensor& x, int from, int to);
  void add(std::size_t operation, Sent sent);
  bool writes() const { return trace_ && trace_->on(); }
  double now() const { return group_ ? group_.clock().seconds() : 0; }

  std::string name_;
  int rank_, size_;
  std::vector<int> hosts_;
  Communicator group_{nullptr};
  std::string backend_;
  RequestedAlgorithms asked_;
  std::shared_ptr<const Selector> selector_;
  std::map<Key, Foreseen> foreseen_;  // by kind of call
  Account account_;
  CommunicationTime* time_;
  Trace* trace_ = nullptr;
  Script* script_ = nullptr;
};

// Collective: the values of all ranks, in rank order.
template <class T>
std::vector<T> exchange(Axis& axis, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const std::string& bytes : axis.exchange({reinterpret_cast<const char*>(&mine), sizeof mine}))
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof(T));
  return all;
}

}  // namespace chorale
