#include "layers/sequence_rows.hpp"

#include <numeric>

#include "layers/context.hpp"

namespace chorale {

std::vector<std::int64_t> SequenceRows::places(std::int64_t, const Context& context) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(context.tokens.tokens));
  std::iota(all.begin(), all.end(), context.tokens.first_token);
  return all;
}

std::int64_t SequenceRows::most_tokens(const Context& context) const { return context.tokens.tokens; }

const SequenceRows& SequenceRows::alone() {
  static const SequenceRows rows;
  return rows;
}

}  // namespace chorale
