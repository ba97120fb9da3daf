#include "collectives/backends/message/call_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "collectives/transport/call_errors.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

// Returns a hash of three values: the group's id, its members, and the number that each member has assigned to the group. A
// rank is never in two groups with the same members and numbers.
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

CallAgreement::CallAgreement(ControlEndpoint& control, const Membership& group)
    : control_(control),
      group_(group),
      own_(address_at(group.rank)),
      incarnation_(incarnation_of(group)),
      calls_(control.rank()) {}

CallAgreement::~CallAgreement() {
  if (!is_pair() && !has_left_) control_.end(own_.number);
}

Address CallAgreement::address_at(int member) const {
  Address address{static_cast<std::uint64_t>(group_.offers.at(static_cast<std::size_t>(member)))};
  if (is_pair()) {
    address.from = group_.members[0];
    address.to = group_.members[1];
  }
  return address;
}

void CallAgreement::examine() {
  control_.listen();
  auto& inbox = control_.inbox();
  for (auto message = inbox.begin(); message != inbox.end();) {
    // If an `ask` message is about a call that this rank has not made yet, the message is kept until this rank makes that
    // call.
    const bool is_early = message->kind == ControlMessage::Kind::ask && calls_.calls() < message->sequence;
    if (message->to != own_ || is_early || message->kind == ControlMessage::Kind::news) {
      ++message;
      continue;
    }
    const ControlMessage read_once = *message;
    message = inbox.erase(message);
    read(read_once);
  }
  if (!gave_up_.empty()) throw_gave_up(gave_up_, "");
}

// Reads only the control messages `closed` and `farewell`. The caller waits only for these messages, so this function
// compares no calls.
void CallAgreement::hear_out() noexcept try {
  control_.listen();
  control_.inbox().remove_if([&](const ControlMessage& message) {
    const bool says_closed = message.kind == ControlMessage::Kind::closed || message.kind == ControlMessage::Kind::farewell;
    if (message.to == own_ && says_closed) read(message);
    return message.to == own_ && says_closed;
  });
} catch (const std::exception&) {  // the caller waits again, up to its own time limit
}

void CallAgreement::read(const ControlMessage& message) {
  if (message.kind == ControlMessage::Kind::closed) {
    closed_.insert(message.sender);
    return;
  }
  if (message.kind == ControlMessage::Kind::poison) {
    if (gave_up_.empty() && !has_poisoned_) gave_up_ = message.text;
    return;
  }
  if (message.kind == ControlMessage::Kind::farewell) {
    left_.emplace(message.sender, message);
    return;
  }
  calls_.compare(message);
  std::uint64_t& newest = asked_[message.sender];
  newest = std::max(newest, message.sequence);
}

bool CallAgreement::was_asked(int peer, std::uint64_t sequence) const {
  const auto newest = asked_.find(world_rank(peer));
  return newest != asked_.end() && newest->second >= sequence;
}

ControlMessage CallAgreement::message_about(ControlMessage::Kind kind, std::uint64_t sequence) const {
  ControlMessage about = message(kind);
  about.sequence = sequence;
  about.history = calls_.of(sequence);
  std::snprintf(about.text, sizeof about.text, "%s", calls_.words_of(sequence).c_str());
  return about;
}

void CallAgreement::ask(const std::vector<int>& peers, std::uint64_t sequence) {
  ControlMessage question = message_about(ControlMessage::Kind::ask, sequence);
  for (const int peer : peers) {
    question.to = address_at(peer);
    control_.send(world_rank(peer), question);
  }
}

void CallAgreement::poison(const std::string& why) noexcept {
  if (!gave_up_.empty() || std::exchange(has_poisoned_, true)) return;
  ControlMessage news = message(ControlMessage::Kind::poison);
  std::snprintf(news.text, sizeof news.text, "rank %d gave up: %s", control_.rank(), why.c_str());
  std::replace(std::begin(news.text), std::end(news.text), '\n', ';');
  send_all(news);
}

void CallAgreement::close() noexcept {
  if (!std::exchange(has_closed_, true)) send_all(message(ControlMessage::Kind::closed));
}

// Throws if a peer left the group before the peer made call `sequence`. A farewell alone is not an error, because a farewell
// can overtake the sender's last data messages. So this function compares `sequence` with the number of calls that the
// farewell message reports. A peer sends the farewell of a pair before the farewell of the parent group. If a peer left the
// parent group without a farewell for the pair, the peer never created the pair and sent no messages in the pair.
void CallAgreement::refuse_after_farewell(std::uint64_t sequence) const {
  for (const auto& [peer, farewell] : left_) {
    calls_.compare(farewell);
    if (farewell.sequence < sequence)
      throw_left(peer, farewell.sequence, control_.rank(), sequence, calls_.words_of(sequence));
  }
  if (!is_pair()) return;
  const int other = group_.members[static_cast<std::size_t>(1 - group_.rank)];
  if (control_.has_left(own_.number, other) && !left_.contains(other))
    throw_left(other, 0, control_.rank(), sequence, calls_.words_of(sequence));
}

// In a pair, the receiver has waited for every message of the sender, so no calls are left to compare.
void CallAgreement::leave() {
  send_all(message_about(ControlMessage::Kind::farewell, calls_.calls()));
  if (is_pair()) return;
  control_.listen();
  hear_out();
  for (const auto& [peer, farewell] : left_) calls_.compare(farewell);
  std::set<int> staying(group_.members.begin(), group_.members.end());
  staying.erase(control_.rank());
  for (const auto& [peer, farewell] : left_) staying.erase(peer);
  for (const int peer : closed_) staying.erase(peer);
  has_left_ = true;
  control_.end(own_.number, std::move(staying),
               [calls = calls_](const ControlMessage& farewell) { calls.compare(farewell); });
}

void CallAgreement::send_all(ControlMessage message) noexcept {
  for (int member = 0; member < static_cast<int>(group_.members.size()); ++member) {
    if (member == group_.rank) continue;
    message.to = address_at(member);
    control_.send(world_rank(member), message);
  }
}

void CallAgreement::tell(std::span<const char> news) noexcept {
  ControlMessage told = message(ControlMessage::Kind::news);
  std::copy(news.begin(), news.end(), told.text);
  send_all(told);
}

bool CallAgreement::heard(std::span<char> news) {
  control_.listen();
  auto& inbox = control_.inbox();
  const auto message = std::find_if(inbox.begin(), inbox.end(), [&](const ControlMessage& any) {
    return any.to == own_ && any.kind == ControlMessage::Kind::news;
  });
  if (message == inbox.end()) return false;
  std::copy_n(message->text, news.size(), news.begin());
  inbox.erase(message);
  return true;
}

void CallAgreement::wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const {
  throw Error(Exit::runtime, "a message has the wrong length",
              fmt::format("rank {} expected {} bytes from rank {} in {}, but {} arrived", control_.rank(), expected, peer,
                          words, came < 0 ? "more" : std::to_string(came)),
              "make the same calls in the same order on all ranks of a group");
}

// Asks the peers about the current call after 64, 128, 256, … checks. The intervals grow, because a slow peer is not an
// error and must not be flooded with control messages.
void CallWatch::examine() {
  constexpr std::uint64_t patience = 64;
  agreement_->examine();
  agreement_->refuse_after_farewell(sequence_);
  if (checked_ && ++examined_ >= patience && std::has_single_bit(examined_)) agreement_->ask(peers_, sequence_);
}

void CallWatch::ask() {
  if (!std::exchange(has_asked_, true)) agreement_->ask(peers_, sequence_);
}

}  // namespace chorale
