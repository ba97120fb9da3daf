// A schedule is one rank's part of a collective algorithm, as plain data: what to send, receive, reduce and copy, and which
// step waits for which. The same data is proved (analysis/checker.hpp), drawn, priced and executed.
//
//   ring all-reduce, rank 0 of 2      0  send         to 1    input[0..4)
//                                     1  recv_reduce  from 1  input[4..8) + theirs → output[4..8)
//                                     2  send         to 1    output[4..8)                          after 1
//                                     3  recv         from 1  output[0..4)                          after 0
//
// An algorithm only lists steps. A step waits for the earlier steps whose data it reads or overwrites, and for no others
// unless the algorithm says so. Steps that would move nothing are left out, by sender and receiver alike.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/last_access.hpp"
#include "collectives/problem.hpp"

namespace chorale {

enum class Place : std::uint8_t { input, output, scratch };

struct Range {
  Place place = Place::input;
  std::int64_t first = 0, count = 0;
};

enum class Kind : std::uint8_t { send, recv, recv_reduce, reduce, copy };
inline constexpr const char* kind_names[] = {"send", "recv", "recv_reduce", "reduce", "copy"};

struct Step {
  Kind kind = Kind::send;
  std::vector<int> peers;  // send: to each; recv: from the one; recv_reduce: from all, added in rank order with our own
  std::vector<Range> src;  // send, copy: what; recv_reduce: our own contribution; reduce: the addends, each as long as dst
  Range dst;               // recv, recv_reduce, reduce, copy
  std::vector<int> after = {};  // steps of this rank that must be over first
  int round = 0;                // for drawing
  bool put = false;             // send: on mapped memory, the sender writes to the receiver; otherwise the receiver reads
};

class Schedule {
 public:
  explicit Schedule(const Problem& problem) : problem_(problem) {}

  // Later steps are drawn one line further down. This orders nothing.
  void round() { ++round_; }
  // Later steps wait for all earlier ones. For algorithms that must not do everything at once.
  void wait_for_all();

  void send(int peer, Range what) { send(std::vector<int>{peer}, what); }
  void send(std::vector<int> peers, Range what) { add({Kind::send, std::move(peers), {what}, {}, {}, round_}); }
  void put(int peer, Range what) { add({Kind::send, {peer}, {what}, {}, {}, round_, true}); }
  void recv(int peer, Range into) { add({Kind::recv, {peer}, {}, into, {}, round_}); }
  void recv_reduce(int peer, Range own, Range into) { recv_reduce(std::vector<int>{peer}, own, into); }
  void recv_reduce(std::vector<int> peers, Range own, Range into) {
    add({Kind::recv_reduce, std::move(peers), {own}, into, {}, round_});
  }
  void copy(Range from, Range into);  // no step if both are the same memory already
  void reduce(std::vector<Range> addends, Range into) { add({Kind::reduce, {}, std::move(addends), into, {}, round_}); }
  Range scratch(std::int64_t count);  // new scratch elements

  // Adds any step, which also waits for the steps in `ordered`. Returns its number, or −1 if it would move nothing.
  int add(Step step, const std::vector<int>& ordered = {});
  // Adds all of `part`, planned for the ranks `members` of this problem. These ranges become its input and output.
  void append(const Schedule& part, const std::vector<int>& members, Range input, Range output);

  // Public for code that runs the steps, and for tests that break one.
  std::vector<Step> steps;

  const Problem& problem() const { return problem_; }
  std::int64_t scratch_count() const { return scratch_; }
  std::int64_t elements_sent() const;
  std::string describe() const;  // one line per step

 private:
  LastAccess& last_access(const Range& range);
  std::vector<int> needed(std::vector<int>& earlier) const;
  Problem problem_;
  std::array<LastAccess, 3> last_access_;  // in place, output shares the entry of input
  int round_ = 0;
  int fence_ = 0, fence_before_ = 0;  // new steps wait for the steps between these two
  std::int64_t scratch_ = 0;
};

// On one rank, in place or not: whether two ranges begin at the same element of one buffer; whether they share an element.
bool same_start(const Problem& problem, const Range& a, const Range& b);
bool overlap(const Problem& problem, const Range& a, const Range& b);
bool conflict(const Problem& problem, const Step& a, const Step& b);  // one of them writes what the other reads or writes

inline Range input(std::int64_t first, std::int64_t count) { return {Place::input, first, count}; }
inline Range output(std::int64_t first, std::int64_t count) { return {Place::output, first, count}; }

}  // namespace chorale
