// Letters: control messages that ranks exchange beside the data of their collectives. They ask about a call that is stuck,
// announce that a rank gave up, and say farewell when a rank leaves a group. Without errors only farewells are sent.
//
//   rank 0   group 7 ─┐  "in your group 4: which call is your 12th?"    ┌─ group 4   rank 1
//                     └──────────────── letter ────────────────────────▶┘
//
// A letter can arrive late: its sender asked because rank 1 was slow. Meanwhile rank 1 may have finished that call, left the
// group and joined another. Five rules keep such a letter harmless:
//
//   1. Each rank numbers the groups it joins on a line: 1, 2, 3, … No number is used twice.
//   2. Members learn each other's numbers while the group is created (Transport::offer). A letter carries its recipient's
//      number, so it reaches exactly the group it was written for, or none.
//   3. A letter for a group that has ended is dropped, unless it is a farewell that this rank still has to compare with its
//      own calls. A letter for an announced number whose group is not ready yet is kept.
//   4. The two groups of a pair of ranks are identified by their parent's number and their direction. They end no later than
//      their parent.
//   5. A farewell is the last letter that its sender writes to that group, and arrives after all earlier ones.
//
// Group ids (Membership::id) are reused, so they never decide where a letter goes.
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

// A group, as numbered by one of its members.
struct Address {
  std::uint64_t number = 0;         // a pair uses its parent's
  std::int32_t from = -1, to = -1;  // of a pair, as world ranks
  bool operator==(const Address&) const = default;
};

struct Letter {
  enum class Kind : std::int32_t { ask, poison, closed, news, farewell };
  Kind kind;
  std::int32_t sender;  // world rank
  Address to;
  std::uint64_t sequence, history;
  char text[472];  // the call in words; or which rank gave up, and why
};

// Transports letters between the ranks of a world. Every letter arrives; letters from one rank to another keep their order.
class Mail {
 public:
  virtual ~Mail() = default;
  virtual int rank() const = 0;
  virtual void send(int to, const Letter& letter) noexcept = 0;
  virtual bool receive(Letter& letter) = 0;  // false: none has arrived
  virtual void nothing_more_comes() {}       // tells the mail that this rank has received all its letters
};

std::unique_ptr<Mail> mail_over_mpi(MPI_Comm world);  // collective

// One rank's end of the mail: its group numbers, and the letters for groups that have not ended.
class ServiceLine {
 public:
  using Compare = std::function<void(const Letter& farewell)>;  // throws if its sender made other calls

  explicit ServiceLine(std::unique_ptr<Mail> mail) : mail_(std::move(mail)) {}
  explicit ServiceLine(MPI_Comm world) : ServiceLine(mail_over_mpi(world)) {}
  ~ServiceLine();
  int rank() const { return mail_->rank(); }

  std::uint64_t next_number();              // for a group that this rank is about to join
  void end(std::uint64_t number) noexcept;  // that group and its pairs are gone
  // The same, but the farewells of the ranks `staying` are still to come.
  void end(std::uint64_t number, std::set<int> staying, Compare compare);
  bool has_left(std::uint64_t number, int rank) const { return left_.contains({number, rank}); }
  bool all_left();  // every group that ended here has ended elsewhere too, as far as known; throws if calls differed

  void send(int to, const Letter& letter) noexcept { mail_->send(to, letter); }
  void listen();  // receives all letters that have arrived
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
  std::set<std::uint64_t> open_;                  // numbers of groups that have not ended
  std::set<std::pair<std::uint64_t, int>> left_;  // of open numbers: ranks that have said farewell
  std::map<std::uint64_t, Ended> ended_;          // groups that have ended here, but not everywhere
  bool is_complete_ = true;                       // every group that ended here was left regularly
  std::list<Letter> inbox_;
};

}  // namespace chorale
