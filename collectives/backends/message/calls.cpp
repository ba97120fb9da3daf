#include "collectives/backends/message/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr int tag = 1;
constexpr const char* fix = "all ranks of a group make the same calls in the same order: see the log of each rank named";

}  // namespace

ServiceLine::ServiceLine(MPI_Comm world) {
  MPI_Comm own = MPI_COMM_NULL;
  mpi::check(PMPI_Comm_dup(world, &own));
  comm_.reset(own);
  mpi::check(PMPI_Comm_rank(own, &rank_));
}

// A letter is small enough to be on its way at once. One that nobody takes stays behind, and MPICH would deliver it to a later
// communicator that gets this one's number: then this one keeps it.
ServiceLine::~ServiceLine() {
  if (has_sent_) comm_.release();
  for (Sent& sent : sent_)
    if (sent.request != MPI_REQUEST_NULL) PMPI_Request_free(&sent.request);
}

void ServiceLine::send(int to, const Letter& letter) noexcept {
  try {
    sent_.remove_if([](Sent& old) {
      int over = 0;
      return PMPI_Test(&old.request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && over;
    });
    Sent& sent = sent_.emplace_back(Sent{letter, MPI_REQUEST_NULL});
    has_sent_ = true;
    PMPI_Isend(&sent.letter, sizeof(Letter), MPI_BYTE, to, tag, comm_.get(), &sent.request);
  } catch (const std::exception&) {  // out of memory: the peers' time limit has to do
  }
}

void ServiceLine::listen() {
  for (int there = 1; there;) {
    MPI_Status status;
    mpi::check(PMPI_Iprobe(MPI_ANY_SOURCE, tag, comm_.get(), &there, &status));
    if (!there) return;
    Letter& letter = inbox_.emplace_back();
    mpi::check(PMPI_Recv(&letter, sizeof(Letter), MPI_BYTE, status.MPI_SOURCE, tag, comm_.get(), MPI_STATUS_IGNORE));
  }
}

Membership pair_of(const Membership& parent, int from, int to) {
  const auto world_rank = [&](int member) { return parent.members[static_cast<std::size_t>(member)]; };
  return {{world_rank(from), world_rank(to)}, parent.rank == from ? 0 : 1, parent.id | pair_bit, {}};
}

CallBook::CallBook(ServiceLine& line, const Membership& group) : line_(line), group_(group), key_(group.id) {
  if (group.id & pair_bit)
    key_ |= static_cast<std::uint64_t>(group.members[0]) << 12 | static_cast<std::uint64_t>(group.members[1]) << 38;
}

CallBook::~CallBook() {
  line_.inbox().remove_if([&](const Letter& letter) { return letter.group == key_; });
}

void CallBook::enter(const Plan& plan) {
  const auto is_known = [&](const Known& known) { return known.signature == plan.signature; };
  if (std::none_of(known_.begin(), known_.end(), is_known)) known_.push_back({plan.signature, plan.words});
}

// The call, and the one before: that one may be where ranks parted.
std::string CallBook::words_of(std::uint64_t sequence) const {
  const auto words = [&](std::uint64_t number) -> std::string {
    const Made& made = newest_[number % newest_.size()];
    for (const Known& known : known_)
      if (made.sequence == number && known.signature == made.signature) return known.words;
    return "something";
  };
  return words(sequence) + (sequence > 1 ? " (after " + words(sequence - 1) + ")" : "");
}

void CallBook::examine() {
  line_.listen();
  auto& inbox = line_.inbox();
  for (auto letter = inbox.begin(); letter != inbox.end();) {
    // A question about a call that we have not come to stays until we have.
    const bool is_early =
        letter->kind == Letter::Kind::ask && newest_[letter->sequence % newest_.size()].sequence < letter->sequence;
    if (letter->group != key_ || is_early || letter->kind == Letter::Kind::news) {
      ++letter;
      continue;
    }
    const Letter read_once = *letter;
    letter = inbox.erase(letter);
    read(read_once);
  }
  if (!gave_up_.empty()) throw Error(Exit::runtime, gave_up_, "", "mend what is said there; this group can do nothing more");
}

void CallBook::read(const Letter& letter) {
  if (letter.kind == Letter::Kind::poison) {
    if (gave_up_.empty()) gave_up_ = letter.text;
    return;
  }
  const Made& ours = newest_[letter.sequence % newest_.size()];
  if (ours.sequence == letter.sequence && ours.history != 0 && ours.history != letter.history)
    other_call(letter.sender, ours.sequence, letter.text);
  std::uint64_t& newest = asked_[letter.sender];
  newest = std::max(newest, letter.sequence);
}

bool CallBook::was_asked(int peer, std::uint64_t sequence) const {
  const auto newest = asked_.find(world_rank(peer));
  return newest != asked_.end() && newest->second >= sequence;
}

void CallBook::ask(const std::vector<int>& peers, std::uint64_t sequence) {
  Letter letter{Letter::Kind::ask, line_.rank(), key_, sequence, newest_[sequence % newest_.size()].history, ""};
  std::snprintf(letter.text, sizeof letter.text, "%s", words_of(sequence).c_str());
  for (const int peer : peers) line_.send(world_rank(peer), letter);
}

void CallBook::poison(const std::string& why) noexcept {
  if (!gave_up_.empty()) return;
  Letter letter{Letter::Kind::poison, line_.rank(), key_, 0, 0, ""};
  std::snprintf(letter.text, sizeof letter.text, "rank %d gave up: %s", line_.rank(), why.c_str());
  std::replace(std::begin(letter.text), std::end(letter.text), '\n', ';');
  send_all(letter);
}

void CallBook::send_all(const Letter& letter) noexcept {
  for (const int member : group_.members)
    if (member != line_.rank()) line_.send(member, letter);
}

void CallBook::tell(std::span<const char> news) noexcept {
  Letter letter{Letter::Kind::news, line_.rank(), key_, 0, 0, ""};
  std::copy(news.begin(), news.end(), letter.text);
  send_all(letter);
}

bool CallBook::heard(std::span<char> news) {
  line_.listen();
  auto& inbox = line_.inbox();
  const auto letter = std::find_if(inbox.begin(), inbox.end(),
                                   [&](const Letter& any) { return any.group == key_ && any.kind == Letter::Kind::news; });
  if (letter == inbox.end()) return false;
  std::copy_n(letter->text, news.size(), news.begin());
  inbox.erase(letter);
  return true;
}

void CallBook::other_call(int peer, std::uint64_t sequence, const std::string& theirs) const {
  throw Error(Exit::runtime, "ranks of one group made different calls",
              fmt::format("rank {} called {}, rank {} called {}", line_.rank(), words_of(sequence), peer, theirs), fix);
}

void CallBook::wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const {
  throw Error(Exit::runtime, "a message has another length than was expected",
              fmt::format("rank {} expected {} bytes from rank {} in {}, {} came", line_.rank(), expected, peer, words,
                          came < 0 ? "more" : std::to_string(came)),
              fix);
}

// First after some dozen looks, then ever more seldom: slow peers are no mistake, and must not be buried in letters.
void CallWatch::examine() {
  constexpr std::uint64_t patience = 64;
  book_->examine();
  if (checked_ && ++examined_ >= patience && std::has_single_bit(examined_)) book_->ask(peers_, sequence_);
}

}  // namespace chorale
