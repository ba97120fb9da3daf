#include "collectives/analysis/rounds.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

constexpr int unknown = -1, most = std::numeric_limits<int>::max();

// Finds the rounds of all steps. A step's round is known once the rounds of all steps and messages that the step waits for
// are known. The search repeats until nothing changes. `follow_marks`: whether calls of Schedule::round() also raise the
// round numbers.
class Numbering {
 public:
  Numbering(const std::vector<Schedule>& ranks, const std::vector<Message>& messages, bool follow_marks)
      : ranks_(ranks), follow_marks_(follow_marks) {
    rounds_.messages = messages;
    for (const Schedule& schedule : ranks) {
      rounds_.of.emplace_back(schedule.steps.size(), unknown);
      sends_for_.emplace_back(schedule.steps.size());
    }
    for (const Message& message : messages) sends_for_[index(message.to)][index(message.recv)].push_back(message);
  }

  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) moved = sweep(r) || moved;
    }
    return std::none_of(rounds_.of.begin(), rounds_.of.end(),
                        [](const std::vector<int>& of) { return std::find(of.begin(), of.end(), unknown) != of.end(); });
  }

  const Rounds& rounds() const { return rounds_; }

 private:
  bool sweep(std::size_t r) {
    const auto& steps = ranks_[r].steps;
    auto& round = rounds_.of[r];
    bool moved = false;
    // last_sent[n] is the last round of the sends that were added after n calls of Schedule::round(). The entry has the
    // value `most` while one of these sends has no round yet.
    std::map<int, int> last_sent;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool is_send = steps[s].kind == Kind::send;
      if (round[s] == unknown) {
        int before = 0;
        for (auto mark = last_sent.begin(); is_send && mark != last_sent.lower_bound(steps[s].round); ++mark)
          before = std::max(before, mark->second);
        round[s] = before == most ? unknown : round_of(r, s, before);
        moved = moved || round[s] != unknown;
      }
      if (is_send && follow_marks_) {
        int& last = last_sent[steps[s].round];
        last = std::max(last, round[s] == unknown ? most : round[s]);
      }
      rounds_.count = std::max(rounds_.count, round[s]);
    }
    return moved;
  }

  int round_of(std::size_t r, std::size_t s, int latest) const {
    for (const int before : ranks_[r].steps[s].after) {
      const int known = rounds_.of[r][index(before)];
      if (known == unknown) return unknown;
      latest = std::max(latest, known);
    }
    for (const Message& message : sends_for_[r][s]) {
      const int known = rounds_.of[index(message.from)][index(message.send)];
      if (known == unknown) return unknown;
      latest = std::max(latest, known);
    }
    return ranks_[r].steps[s].kind == Kind::send ? latest + 1 : latest;
  }

  const std::vector<Schedule>& ranks_;
  bool follow_marks_;
  std::vector<std::vector<std::vector<Message>>> sends_for_;
  Rounds rounds_;
};

}  // namespace

Rounds find_rounds(const std::vector<Schedule>& ranks) {
  const std::vector<Message> messages = StepGraph(ranks).messages();
  // The second attempt ignores round() calls, because the round() calls of different ranks can contradict each other.
  for (const bool follow_marks : {true, false}) {
    Numbering numbering(ranks, messages, follow_marks);
    if (numbering.run()) return numbering.rounds();
  }
  misuse("steps that wait for one another have no round", std::source_location::current());
}

}  // namespace chorale
