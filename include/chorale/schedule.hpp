// A schedule is one rank's part of a collective algorithm, stored as plain data. The schedule lists the rank's sends,
// receives, reductions and copies. For each step, the schedule also lists the earlier steps that must complete first. The
// same schedule is proved correct (algorithm.hpp), drawn, priced and executed.
//
//   ring all-reduce, rank 0 of 2      0  send         to 1    input[4..8)
//                                     1  recv_reduce  from 1  input[0..4) + received → output[0..4)
//                                     2  send         to 1    output[0..4)                            after 1
//                                     3  recv         from 1  output[4..8)
//
// In the picture, "after" names the steps that a step waits for. An algorithm only lists steps, and add() finds the
// dependencies. A step waits for an earlier step if both steps access the same elements and one of the two steps writes the
// elements. An algorithm may request further dependencies. Sender and receiver both omit empty messages.
#pragma once
#include <chorale/problem.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace chorale {

enum class Place : std::uint8_t { input, output, scratch };  // the three buffers of a rank

struct Range {  // consecutive elements of one buffer
  Place place = Place::input;
  std::int64_t first = 0, count = 0;
};

// recv_reduce adds the received ranges and this rank's own range, in rank order. reduce adds its ranges in the order of src.
enum class Kind : std::uint8_t { send, recv, recv_reduce, reduce, copy };
inline constexpr const char* kind_names[] = {"send", "recv", "recv_reduce", "reduce", "copy"};

struct Step {
  Kind kind = Kind::send;
  std::vector<int> peers;  // send: the receivers; recv: the sender; recv_reduce: the senders
  std::vector<Range> src;  // send, copy: the source; recv_reduce: this rank's addend; reduce: all addends, as long as dst
  Range dst;               // where recv and copy write, and where recv_reduce and reduce put the sum; unused by send
  std::vector<int> after = {};  // steps of this rank that must be over first
  int round = 0;                // number of round() calls before this step
  bool put = false;             // for a send on mapped memory: whether the sender writes; otherwise the receiver reads
};

class LastAccess;

class Schedule {
 public:
  explicit Schedule(const Problem& problem);
  Schedule(const Schedule&);
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(const Schedule&);
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule();

  // Starts a new round. Later sends get a higher round number than earlier sends, but later sends do not wait for earlier
  // sends. Drawing, pricing and the order of chunks use the round numbers.
  void round() { ++round_; }
  // Makes all later steps wait for all earlier steps. Algorithms whose rounds must not overlap use this function.
  void wait_for_all();

  void send(int peer, Range what) { send(std::vector<int>{peer}, what); }
  void send(std::vector<int> peers, Range what) { add({Kind::send, std::move(peers), {what}, {}, {}, round_}); }
  void put(int peer, Range what) { add({Kind::send, {peer}, {what}, {}, {}, round_, true}); }
  void recv(int peer, Range into) { add({Kind::recv, {peer}, {}, into, {}, round_}); }
  void recv_reduce(int peer, Range own, Range into) { recv_reduce(std::vector<int>{peer}, own, into); }
  void recv_reduce(std::vector<int> peers, Range own, Range into) {
    add({Kind::recv_reduce, std::move(peers), {own}, into, {}, round_});
  }
  void copy(Range from, Range into);  // adds no step if both ranges are the same memory
  void reduce(std::vector<Range> addends, Range into) { add({Kind::reduce, {}, std::move(addends), into, {}, round_}); }
  Range scratch(std::int64_t count);  // allocates scratch elements

  // Adds a step of any kind, which also waits for the steps in `ordered`. Returns the step's number, or −1 if the step is
  // empty.
  int add(Step step, const std::vector<int>& ordered = {});
  // Adds the steps of `part`, a schedule for the ranks `members` of this problem. On this rank, the ranges `input` and
  // `output` serve as the input and output of `part`.
  void append(const Schedule& part, const std::vector<int>& members, Range input, Range output);

  // `steps` is public, because executors read it, and tests corrupt single steps.
  std::vector<Step> steps;

  const Problem& problem() const { return problem_; }
  std::int64_t scratch_count() const { return scratch_; }
  std::int64_t elements_sent() const;
  std::int64_t elements_crossing() const;  // elements sent to other hosts (Problem::hosts)
  std::string describe() const;            // one line per step

 private:
  LastAccess& last_access(const Range& range);
  std::vector<int> needed(std::vector<int>& earlier) const;
  Problem problem_;
  std::vector<LastAccess> last_access_;  // indexed by Place; in an in-place call, output uses the entry of input
  int round_ = 0;
  int fence_ = 0, fence_before_ = 0;  // new steps wait for the steps in [`fence_before_`, `fence_`)
  std::int64_t scratch_ = 0;
};

// These functions compare ranges and steps of one rank. In an in-place call, input and output are the same vector, so an
// input range can overlap an output range.
bool same_start(const Problem& problem, const Range& a, const Range& b);  // both begin at the same element
bool overlap(const Problem& problem, const Range& a, const Range& b);     // at least one element is in both
// Whether one of the two steps writes elements that the other step reads or writes.
bool conflict(const Problem& problem, const Step& a, const Step& b);

inline Range input(std::int64_t first, std::int64_t count) { return {Place::input, first, count}; }
inline Range output(std::int64_t first, std::int64_t count) { return {Place::output, first, count}; }

}  // namespace chorale
