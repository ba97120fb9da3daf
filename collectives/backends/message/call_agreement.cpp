#include "collectives/backends/message/call_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "collectives/transport/call_errors.hpp"
#include "src/base/error.hpp"
#include "src/base/hash.hpp"

namespace chorale {
namespace {

// A hash of a group's id, members and group numbers. A rank is never in two groups with the same members and numbers.
std::uint64_t incarnation_of(const Membership& group) {
  std::uint64_t hash = group.id;
  for (std::size_t i = 0; i < group.members.size(); ++i)
    for (const std::int64_t part : {std::int64_t{group.members[i]}, group.offers[i]})
      hash = hash_with(hash, static_cast<std::uint64_t>(part));
  return hash;
}

}  // namespace

Membership pair_of(const Membership& parent, int from, int to) {
  const auto world_rank = [&](int member) { return parent.members[static_cast<std::size_t>(member)]; };
  const auto offer = [&](int member) { return parent.offers[static_cast<std::size_t>(member)]; };
  return {{world_rank(from), world_rank(to)}, parent.rank == from ? 0 : 1, parent.id | pair_bit, {offer(from), offer(to)}};
}

CallBook::CallBook(ServiceLine& line, const Membership& group)
    : line_(line), group_(group), own_(address_at(group.rank)), incarnation_(incarnation_of(group)), calls_(line.rank()) {}

CallBook::~CallBook() {
  if (!is_pair() && !has_left_) line_.end(own_.number);
}

Address CallBook::address_at(int member) const {
  Address address{static_cast<std::uint64_t>(group_.offers.at(static_cast<std::size_t>(member)))};
  if (is_pair()) address.from = group_.members[0], address.to = group_.members[1];
  return address;
}

void CallBook::examine() {
  line_.listen();
  auto& inbox = line_.inbox();
  for (auto letter = inbox.begin(); letter != inbox.end();) {
    // A question about a call that this rank has not reached is kept until it reaches that call.
    const bool is_early = letter->kind == Letter::Kind::ask && calls_.calls() < letter->sequence;
    if (letter->to != own_ || is_early || letter->kind == Letter::Kind::news) {
      ++letter;
      continue;
    }
    const Letter read_once = *letter;
    letter = inbox.erase(letter);
    read(read_once);
  }
  if (!gave_up_.empty()) throw_gave_up(gave_up_, "");
}

// Reads only the letters that say that a peer closed or left. The caller waits only for these letters, so no calls are
// compared.
void CallBook::hear_out() noexcept try {
  line_.listen();
  line_.inbox().remove_if([&](const Letter& letter) {
    const bool says_closed = letter.kind == Letter::Kind::closed || letter.kind == Letter::Kind::farewell;
    if (letter.to == own_ && says_closed) read(letter);
    return letter.to == own_ && says_closed;
  });
} catch (const std::exception&) {  // the caller goes on waiting, up to its own time limit
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
  if (letter.kind == Letter::Kind::farewell) {
    left_.emplace(letter.sender, letter);
    return;
  }
  calls_.compare(letter);
  std::uint64_t& newest = asked_[letter.sender];
  newest = std::max(newest, letter.sequence);
}

bool CallBook::was_asked(int peer, std::uint64_t sequence) const {
  const auto newest = asked_.find(world_rank(peer));
  return newest != asked_.end() && newest->second >= sequence;
}

Letter CallBook::letter_about(Letter::Kind kind, std::uint64_t sequence) const {
  Letter about = letter(kind);
  about.sequence = sequence;
  about.history = calls_.of(sequence);
  std::snprintf(about.text, sizeof about.text, "%s", calls_.words_of(sequence).c_str());
  return about;
}

void CallBook::ask(const std::vector<int>& peers, std::uint64_t sequence) {
  Letter question = letter_about(Letter::Kind::ask, sequence);
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

// Throws if a peer left the group before it made call `sequence`. A farewell alone is no error, because it may overtake the
// sender's last messages; so this function compares the numbers of calls. The farewell on a pair always comes before the one
// on its parent group. So if a peer left the parent and no farewell came for the pair, the peer never created the pair and
// sent nothing on it.
void CallBook::refuse_after_farewell(std::uint64_t sequence) const {
  for (const auto& [peer, farewell] : left_) {
    calls_.compare(farewell);
    if (farewell.sequence < sequence) throw_left(peer, farewell.sequence, line_.rank(), sequence, calls_.words_of(sequence));
  }
  if (!is_pair()) return;
  const int other = group_.members[static_cast<std::size_t>(1 - group_.rank)];
  if (line_.has_left(own_.number, other) && !left_.contains(other))
    throw_left(other, 0, line_.rank(), sequence, calls_.words_of(sequence));
}

// On a pair, the receiver has waited for each message of the sender, so no calls are left to compare.
void CallBook::leave() {
  send_all(letter_about(Letter::Kind::farewell, calls_.calls()));
  if (is_pair()) return;
  line_.listen();
  hear_out();
  for (const auto& [peer, farewell] : left_) calls_.compare(farewell);
  std::set<int> staying(group_.members.begin(), group_.members.end());
  staying.erase(line_.rank());
  for (const auto& [peer, farewell] : left_) staying.erase(peer);
  for (const int peer : closed_) staying.erase(peer);
  has_left_ = true;
  line_.end(own_.number, std::move(staying), [calls = calls_](const Letter& farewell) { calls.compare(farewell); });
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

void CallBook::wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const {
  throw Error(Exit::runtime, "a message has the wrong length",
              fmt::format("rank {} expected {} bytes from rank {} in {}, but {} arrived", line_.rank(), expected, peer,
                          words, came < 0 ? "more" : std::to_string(came)),
              "make the same calls in the same order on all ranks of a group");
}

// Asks the peers about the current call after 64, 128, 256, … checks. A slow peer is no error, and must not be flooded with
// letters.
void CallWatch::examine() {
  constexpr std::uint64_t patience = 64;
  book_->examine();
  book_->refuse_after_farewell(sequence_);
  if (checked_ && ++examined_ >= patience && std::has_single_bit(examined_)) book_->ask(peers_, sequence_);
}

void CallWatch::ask() {
  if (!std::exchange(has_asked_, true)) book_->ask(peers_, sequence_);
}

}  // namespace chorale
