#include "collectives/backends/near/messenger.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/backends/mapped/flag_page.hpp"

namespace chorale::near {

NearMessenger::NearMessenger(Post& post, CallAgreement& agreement, const Plan& plan,
                             const std::vector<FlatMessage>& messages)
    : post_(post), agreement_(agreement), words_(plan.words) {
  constexpr std::size_t apart = 8;  // distance of `taken` words, so that each receiver writes to its own cache line
  taken_ = post.reach().memory().allocate(
      static_cast<std::int64_t>(std::max<std::size_t>(1, messages.size()) * apart * sizeof(std::uint64_t)), Category::comm);
  auto* const words = static_cast<std::uint64_t*>(taken_.data());
  std::fill_n(words, messages.size() * apart, 0);
  for (const FlatMessage& message : messages) {
    const int peer = agreement.world_rank(message.peer);
    lines_.push_back({peer, post.local(peer), message.bytes, message.incoming ? nullptr : words + lines_.size() * apart});
  }
  active_.reserve(lines_.size());
  over_.reserve(lines_.size());
}

void NearMessenger::start(const Run& run) {
  sequence_ = run.sequence;
  history_ = agreement_.mark(run.history);
}

bool NearMessenger::post(int message, void* place) {
  Line& line = lines_[static_cast<std::size_t>(message)];
  if (line.taken) {
    send(line, place);
    if (is_over(line)) return true;
  } else {
    line.incoming = {line.local, agreement_.mark(0), sequence_, place, line.bytes};
    post_.receive(line.incoming);
    if (line.incoming.over) {
      check_arrival(line);
      return true;
    }
  }
  active_.push_back(message);
  return false;
}

bool NearMessenger::is_over(const Line& line) const {
  if (!line.taken) return line.incoming.over;
  return line.bytes <= carried_bytes ? post_.has_sent(line.local, line.number)
                                     : mapped::load_acquire(*line.taken) == line.run;
}

void NearMessenger::send(Line& line, const void* data) {
  Notice notice;
  notice.group = agreement_.mark(0);
  notice.sequence = sequence_;
  notice.history = history_;
  notice.bytes = line.bytes;
  if (line.bytes <= carried_bytes) {
    if (line.bytes > 0) std::memcpy(notice.carried, data, static_cast<std::size_t>(line.bytes));
  } else {
    mapped::Reach& reach = post_.reach();
    if (!reach.has_kernel_copies() && !(reach.locate(data) & mapped::is_mapped)) {
      if (!line.copy.data()) line.copy = reach.memory().allocate(line.bytes, Category::workspace);
      std::memcpy(line.copy.data(), data, static_cast<std::size_t>(line.bytes));
      data = line.copy.data();
    }
    notice.data = reach.locate(data);
    notice.taken = reach.locate(line.taken);
    notice.run = ++line.run;
  }
  line.number = post_.send(line.local, notice);
}

std::span<const int> NearMessenger::progress() {
  post_.progress();
  over_.clear();
  std::erase_if(active_, [&](int message) {
    const bool over = is_over(lines_[static_cast<std::size_t>(message)]);
    if (over) over_.push_back(message);
    return over;
  });
  for (const int message : over_) check_arrival(lines_[static_cast<std::size_t>(message)]);
  return over_;
}

void NearMessenger::check_arrival(const Line& line) const {
  if (line.taken) return;
  if (line.incoming.history != history_) agreement_.other_call(line.peer, sequence_, "something else");
  if (line.incoming.came != line.bytes) agreement_.wrong_length(line.peer, words_, line.incoming.came, line.bytes);
}

void NearMessenger::cancel() noexcept {
  for (const Line& line : lines_)
    if (!line.taken) post_.cancel(line.incoming);
}

// Whether any send is still in flight. Sends to a peer that has sent `closed` do not count, because that peer accepts no
// more messages.
bool NearMessenger::is_sending() noexcept {
  return std::ranges::any_of(active_, [&](int message) {
    const Line& line = lines_[static_cast<std::size_t>(message)];
    return line.taken && !is_over(line) && !agreement_.has_closed(line.peer);
  });
}

MessageDivision::MessageDivision(const Post& post, const CallAgreement& agreement,
                                 const std::vector<FlatMessage>& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool is_near = post.is_near(agreement.world_rank(messages[i].peer));
    Part& part = is_near ? near : far;
    ways.push_back({is_near, static_cast<int>(part.messages.size())});
    part.messages.push_back(messages[i]);
    part.numbers.push_back(static_cast<int>(i));
  }
}

}  // namespace chorale::near
