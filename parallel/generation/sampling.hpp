// Draws one token. Temperature divides the logits. At temperature 0, the most likely token is always drawn. Top-k keeps the
// k most likely tokens. Top-p keeps the fewest tokens whose probabilities add up to p (Holtzman et al. 2020). The random
// number of a draw depends only on the seed and the index of the token.
#pragma once
#include <cstdint>
#include <span>

namespace chorale {

struct Sampling {
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;  // 0 keeps all tokens
  std::uint64_t seed = 0;
};

std::int32_t sample(std::span<const float> logits, const Sampling& sampling, std::uint64_t number);

}  // namespace chorale
