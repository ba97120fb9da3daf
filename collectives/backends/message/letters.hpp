// Letters that ranks exchange beside the messages of their collectives: questions about a call that does not move, the news that a rank gave
// up, and its farewell when it leaves a group. While all goes well only farewells are sent.
//
//   rank 0   group 7 ─┐  "in your group 4: which call is your 12th?"    ┌─ group 4   rank 1
//                     └──────────────── letter ────────────────────────▶┘
//
// A letter can come late: its sender asked because rank 1 was slow, and by the time it arrives rank 1 may have finished that call, left the
// group and joined another. Five rules keep such a letter harmless:
//
//   1. Each rank numbers the groups it joins on a line: 1, 2, 3, … No number is used twice.
//   2. Members learn each other's numbers while the group is made (Transport::offer). A letter carries its recipient's number, so it
//      reaches the very group it was written for, or none.
//   3. A letter for a group that has ended is dropped, unless it is a farewell that this rank still wants to compare with its own calls. A
//      letter for a number that was told, but whose group is not ready yet, is kept.
//   4. The two groups of a pair of ranks have their parent's number and their direction. They end no later than their parent.
//   5. A farewell comes after all that its sender wrote before, and is the last letter it writes to that group.
//
// Ids of groups (Membership::id) are reused, so they never decide where a letter goes.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "src/base/mpi.hpp"

namespace chorale {

// A group, as one of its members numbers it.
struct Address {
  std::uint64_t number = 0;         // a pair has its parent's
  std::int32_t from = -1, to = -1;  // of a pair, as ranks of the world
  bool operator==(const Address&) const = default;
};

struct Letter {
  enum class Kind : std::int32_t { ask, poison, closed, news, farewell };
  Kind kind;
  std::int32_t sender;  // as a rank of the world
  Address to;
  std::uint64_t sequence, history;
  char text[472];  // the call in words; who gave up, and why
};

// Carries letters between the ranks of a world. Every letter arrives; those from one rank to another in their order.
class Mail {
 public:
  virtual ~Mail() = default;
  virtual int rank() const = 0;
  virtual void send(int to, const Letter& letter) noexcept = 0;
  virtual bool receive(Letter& letter) = 0;  // false: none has come
  virtual void nothing_more_comes() {}       // all that was sent to this rank has been received
};

std::unique_ptr<Mail> mail_over_mpi(MPI_Comm world);  // on all ranks at once

// A rank's end of the mail: its numbers, and the letters that have come for groups that have not ended.
class ServiceLine {
 public:
  using Compare = std::function<void(const Letter& farewell)>;  // throws if its sender's calls were others

  explicit ServiceLine(std::unique_ptr<Mail> mail) : mail_(std::move(mail)) {}
  explicit ServiceLine(MPI_Comm world) : ServiceLine(mail_over_mpi(world)) {}
  ~ServiceLine();
  int rank() const { return mail_->rank(); }

  std::uint64_t next_number();              // of a group that this rank is about to join
  void end(std::uint64_t number) noexcept;  // that group, and its pairs, are gone
  // The same, where these ranks are still to say farewell.
  void end(std::uint64_t number, std::set<int> staying, Compare compare);
  bool has_left(std::uint64_t number, int rank) const { return left_.contains({number, rank}); }
  bool all_left();  // every group that ended here has ended elsewhere too, as far as is known; throws if calls differed

  void send(int to, const Letter& letter) noexcept { mail_->send(to, letter); }
  void listen();  // takes in what has come
  std::list<Letter>& inbox() { return inbox_; }

 private:
  void take_in(const Letter& letter);
  void close(std::uint64_t number) noexcept;

  struct Ended {
    std::set<int> staying;
    Compare compare;
  };
  std::unique_ptr<Mail> mail_;
  std::uint64_t newest_ = 0;
  std::set<std::uint64_t> open_;                  // numbers whose groups have not ended
  std::set<std::pair<std::uint64_t, int>> left_;  // of open numbers: who has said farewell
  std::map<std::uint64_t, Ended> ended_;          // numbers whose groups have ended here, but not everywhere
  bool is_complete_ = true;                       // all groups that ended here were left in peace
  std::list<Letter> inbox_;
};

}  // namespace chorale
