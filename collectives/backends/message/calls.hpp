// What ranks tell one another when a collective does not move, so that a mistake ends in an error on every rank and not in a hang.
// Nothing is sent while all goes well.
//
//   rank 1 waits a while in its call 7, an all_gather      ask ──→  rank 0, whose call 7 was a broadcast: throws, and gives up
//   rank 1 is told                                                  ←── poison "rank 0 called broadcast …, rank 1 all_gather …"
//
// ServiceLine is the world's: letters over MPI, on a communicator of their own. CallBook is a group's: its newest calls, and what came
// for it. CallWatch is an operation's: the call it is in.
#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "src/base/mpi.hpp"

namespace chorale {

struct Letter {
  enum class Kind : std::int32_t { ask, poison, news };
  Kind kind;
  std::int32_t sender;  // in the world
  std::uint64_t group;  // its key
  std::uint64_t sequence, history;
  char text[480];  // the call in words; who gave up, and why
};

class ServiceLine {
 public:
  explicit ServiceLine(MPI_Comm world);  // on all ranks at once
  ~ServiceLine();
  int rank() const { return rank_; }
  void send(int to, const Letter& letter) noexcept;  // best effort
  void listen();
  std::list<Letter>& inbox() { return inbox_; }

 private:
  struct Sent {
    Letter letter;
    MPI_Request request;
  };
  mpi::Comm comm_;
  int rank_ = 0;
  bool has_sent_ = false;
  std::list<Letter> inbox_;
  std::list<Sent> sent_;
};

// What `from` sends to `to` goes by a group of two with the parent's id and this bit. Their direction tells those of one id apart.
constexpr std::uint32_t pair_bit = 1u << 11;
Membership pair_of(const Membership& parent, int from, int to);

class CallBook {
 public:
  CallBook(ServiceLine& line, const Membership& group);
  ~CallBook();
  const Membership& group() const { return group_; }
  int world_rank(int member) const { return group_.members[static_cast<std::size_t>(member)]; }

  void enter(const Plan& plan);  // a call that may be made
  void note(const Run& run, std::uint64_t signature) {
    newest_[run.sequence % newest_.size()] = {run.sequence, run.history, signature};
  }
  void examine();  // throws if a letter says that a peer gave up, or made another call than we did
  void ask(const std::vector<int>& peers, std::uint64_t sequence);
  bool was_asked(int peer, std::uint64_t sequence) const;  // and, since nothing was thrown, peer's call is ours
  void poison(const std::string& why) noexcept;            // tells all, unless one of them told us: he has told the others

  // Something that the group's first member makes and all must know, of up to 480 bytes. Told once; heard when it has come.
  void tell(std::span<const char> news) noexcept;
  bool heard(std::span<char> news);

  // The errors of this page, from the backends too; `sequence` and `words` are of our own call.
  [[noreturn]] void other_call(int peer, std::uint64_t sequence, const std::string& theirs) const;
  [[noreturn]] void wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const;

 private:
  struct Made {
    std::uint64_t sequence = 0, history = 0, signature = 0;
  };
  struct Known {
    std::uint64_t signature;
    std::string words;
  };
  std::string words_of(std::uint64_t sequence) const;
  void read(const Letter& letter);
  void send_all(const Letter& letter) noexcept;

  ServiceLine& line_;
  Membership group_;
  std::uint64_t key_;  // no two groups of this rank have the same
  std::array<Made, 64> newest_{};
  std::vector<Known> known_;
  std::map<int, std::uint64_t> asked_;  // by each rank of the world: of its newest call
  std::string gave_up_;                 // which peer did, and why; whatever waits on this group from then on fails
};

class CallWatch {
 public:
  CallWatch(CallBook& book, std::uint64_t signature, std::vector<int> peers)
      : book_(&book), signature_(signature), peers_(std::move(peers)) {}
  void start(const Run& run) {
    sequence_ = run.sequence, examined_ = 0, checked_ = run.history != 0;
    book_->note(run, signature_);
  }
  void examine();

 private:
  CallBook* book_;
  std::uint64_t signature_;
  std::vector<int> peers_;
  std::uint64_t sequence_ = 0, examined_ = 0;
  bool checked_ = false;
};

}  // namespace chorale
