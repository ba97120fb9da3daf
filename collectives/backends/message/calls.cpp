#include "collectives/backends/message/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "src/base/error.hpp"

namespace chorale {
namespace {

// No two groups that a rank is ever in have the same members with the same numbers.
std::uint64_t incarnation_of(const Membership& group) {
  std::uint64_t mixed = group.id;
  for (std::size_t i = 0; i < group.members.size(); ++i)
    for (const std::int64_t part : {std::int64_t{group.members[i]}, group.offers[i]})
      mixed = std::rotl((mixed ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u, 29);
  return mixed;
}

constexpr const char* fix = "all ranks of a group make the same calls in the same order: see the log of each rank named";

}  // namespace

Membership pair_of(const Membership& parent, int from, int to) {
  const auto world_rank = [&](int member) { return parent.members[static_cast<std::size_t>(member)]; };
  const auto offer = [&](int member) { return parent.offers[static_cast<std::size_t>(member)]; };
  return {{world_rank(from), world_rank(to)}, parent.rank == from ? 0 : 1, parent.id | pair_bit, {offer(from), offer(to)}};
}

CallBook::CallBook(ServiceLine& line, const Membership& group)
    : line_(line), group_(group), own_(address_at(group.rank)), incarnation_(incarnation_of(group)) {}

CallBook::~CallBook() {
  if (!is_pair()) line_.end(own_.number);
}

Address CallBook::address_at(int member) const {
  Address address{static_cast<std::uint64_t>(group_.offers.at(static_cast<std::size_t>(member)))};
  if (is_pair()) address.from = group_.members[0], address.to = group_.members[1];
  return address;
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
    if (letter->to != own_ || is_early || letter->kind == Letter::Kind::news) {
      ++letter;
      continue;
    }
    const Letter read_once = *letter;
    letter = inbox.erase(letter);
    read(read_once);
  }
  if (!gave_up_.empty()) throw Error(Exit::runtime, gave_up_, "", "mend what is said there; this group can do nothing more");
}

// While this rank waits for peers to close nothing is compared any more.
void CallBook::hear_out() noexcept try {
  line_.listen();
  line_.inbox().remove_if([&](const Letter& letter) {
    const bool says_closed = letter.to == own_ && letter.kind == Letter::Kind::closed;
    if (says_closed) closed_.insert(letter.sender);
    return says_closed;
  });
} catch (const std::exception&) {  // the caller's patience ends
}

void CallBook::read(const Letter& letter) {
  if (letter.kind == Letter::Kind::closed) {
    closed_.insert(letter.sender);
    return;
  }
  if (letter.kind == Letter::Kind::poison) {
    if (gave_up_.empty() && !has_poisoned_) gave_up_ = letter.text;
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
  Letter question = letter(Letter::Kind::ask);
  question.sequence = sequence;
  question.history = newest_[sequence % newest_.size()].history;
  std::snprintf(question.text, sizeof question.text, "%s", words_of(sequence).c_str());
  for (const int peer : peers) {
    question.to = address_at(peer);
    line_.send(world_rank(peer), question);
  }
}

void CallBook::poison(const std::string& why) noexcept {
  if (!gave_up_.empty() || std::exchange(has_poisoned_, true)) return;
  Letter news = letter(Letter::Kind::poison);
  std::snprintf(news.text, sizeof news.text, "rank %d gave up: %s", line_.rank(), why.c_str());
  std::replace(std::begin(news.text), std::end(news.text), '\n', ';');
  send_all(news);
}

void CallBook::close() noexcept {
  if (!std::exchange(has_closed_, true)) send_all(letter(Letter::Kind::closed));
}

void CallBook::send_all(Letter letter) noexcept {
  for (int member = 0; member < static_cast<int>(group_.members.size()); ++member) {
    if (member == group_.rank) continue;
    letter.to = address_at(member);
    line_.send(world_rank(member), letter);
  }
}

void CallBook::tell(std::span<const char> news) noexcept {
  Letter told = letter(Letter::Kind::news);
  std::copy(news.begin(), news.end(), told.text);
  send_all(told);
}

bool CallBook::heard(std::span<char> news) {
  line_.listen();
  auto& inbox = line_.inbox();
  const auto letter = std::find_if(inbox.begin(), inbox.end(),
                                   [&](const Letter& any) { return any.to == own_ && any.kind == Letter::Kind::news; });
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
