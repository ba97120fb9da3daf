#include "collectives/rounds.hpp"

#include <algorithm>
#include <map>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr int unknown = -1;

// Repeats until nothing changes: a step's round is known once those of all it waits for are.
class Numbering {
 public:
  explicit Numbering(const std::vector<Schedule>& ranks) : ranks_(ranks), first_open_(ranks.size(), 0) {
    result_.messages = match_messages(ranks);
    for (const Schedule& schedule : ranks) {
      result_.of.emplace_back(schedule.steps.size(), unknown);
      sent_by_.emplace_back(schedule.steps.size());
    }
    for (const Message& message : result_.messages)
      sent_by_[static_cast<std::size_t>(message.to)][static_cast<std::size_t>(message.recv)].push_back(message);
  }

  Rounds run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) moved = sweep(r) || moved;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      require(first_open_[r] == result_.of[r].size(), "rank {}, step {} waits for ever: it has no round", r, first_open_[r]);
    return std::move(result_);
  }

 private:
  bool sweep(std::size_t r) {
    const auto& steps = ranks_[r].steps;
    auto& round = result_.of[r];
    bool moved = false, all_known = true;
    int mark = 0, last_sent = 0, last_sent_before = 0;  // …before: under earlier marks
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool is_send = steps[s].kind == Kind::send;
      if (is_send && steps[s].round != mark) {
        mark = steps[s].round;
        last_sent_before = last_sent;
      }
      if (round[s] == unknown && s >= first_open_[r]) {
        const int before = is_send ? last_sent_before : 0;
        round[s] = before == unknown ? unknown : round_of(r, s, before);
        moved = moved || round[s] != unknown;
      }
      if (is_send) last_sent = round[s] == unknown || last_sent == unknown ? unknown : std::max(last_sent, round[s]);
      all_known = all_known && round[s] != unknown;
      if (all_known) first_open_[r] = s + 1;
      result_.count = std::max(result_.count, round[s]);
    }
    return moved;
  }

  int round_of(std::size_t r, std::size_t s, int latest) const {
    for (const int before : ranks_[r].steps[s].after) {
      const int known = result_.of[r][static_cast<std::size_t>(before)];
      if (known == unknown) return unknown;
      latest = std::max(latest, known);
    }
    for (const Message& message : sent_by_[r][s]) {
      const int known = result_.of[static_cast<std::size_t>(message.from)][static_cast<std::size_t>(message.send)];
      if (known == unknown) return unknown;
      latest = std::max(latest, known);
    }
    return ranks_[r].steps[s].kind == Kind::send ? latest + 1 : latest;
  }

  const std::vector<Schedule>& ranks_;
  std::vector<std::size_t> first_open_;  // the rounds of all steps before it are known
  std::vector<std::vector<std::vector<Message>>> sent_by_;
  Rounds result_;
};

}  // namespace

std::vector<Message> match_messages(const std::vector<Schedule>& ranks) {
  std::map<std::pair<int, int>, std::vector<int>> sends, receives;  // channel → steps, in order
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t s = 0; s < ranks[r].steps.size(); ++s)
      for (const int peer : ranks[r].steps[s].peers) {
        const int rank = static_cast<int>(r), step = static_cast<int>(s);
        (ranks[r].steps[s].kind == Kind::send ? sends[{rank, peer}] : receives[{peer, rank}]).push_back(step);
      }
  std::vector<Message> messages;
  for (const auto& [channel, sent] : sends) {
    const auto taken = receives.find(channel);
    const std::size_t met = taken == receives.end() ? 0 : taken->second.size();
    require(sent.size() == met, "rank {} sends {} messages to rank {}, which receives {}", channel.first, sent.size(),
            channel.second, met);
    for (std::size_t i = 0; i < met; ++i) messages.push_back({channel.first, channel.second, sent[i], taken->second[i]});
  }
  for (const auto& [channel, taken] : receives)
    require(sends.count(channel) == 1, "rank {} waits for {} messages of rank {}, which sends none", channel.second,
            taken.size(), channel.first);
  return messages;
}

Rounds find_rounds(const std::vector<Schedule>& ranks) { return Numbering(ranks).run(); }

}  // namespace chorale
