#include "collectives/backends/message/history.hpp"

#include <algorithm>

#include "collectives/transport/call_errors.hpp"

namespace chorale {

void CallHistory::enter(const Plan& plan) {
  const auto is_known = [&](const Known& known) { return known.signature == plan.signature; };
  if (std::none_of(known_.begin(), known_.end(), is_known)) known_.push_back({plan.signature, plan.words});
}

std::uint64_t CallHistory::of(std::uint64_t sequence) const {
  const Made& made = made_[sequence % made_.size()];
  return made.sequence == sequence ? made.history : 0;
}

std::string CallHistory::words_of(std::uint64_t sequence) const {
  const auto words = [&](std::uint64_t number) -> std::string {
    const Made& made = made_[number % made_.size()];
    for (const Known& known : known_)
      if (made.sequence == number && known.signature == made.signature) return known.words;
    return "something";
  };
  return words(sequence) + (sequence > 1 ? " (after " + words(sequence - 1) + ")" : "");
}

void CallHistory::compare(const ControlMessage& message) const {
  const std::uint64_t ours = of(message.sequence);
  if (ours != 0 && message.history != 0 && ours != message.history) differs(message.sender, message.sequence, message.text);
}

void CallHistory::differs(int peer, std::uint64_t sequence, const std::string& theirs) const {
  throw_calls_differ(sequence, {rank_, words_of(sequence)}, {peer, theirs});
}

}  // namespace chorale
