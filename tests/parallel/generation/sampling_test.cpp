#include "parallel/generation/sampling.hpp"

#include <limits>
#include <map>
#include <vector>

#include "src/base/error.hpp"
#include "tests/catch.hpp"

namespace chorale {
namespace {

const std::vector<float> logits{1, 3, 2, 3, -50};

std::map<std::int32_t, int> drawn(const Sampling& s, int times = 4000) {
  std::map<std::int32_t, int> count;
  for (int i = 0; i < times; ++i) ++count[sample(logits, s, static_cast<std::uint64_t>(i))];
  return count;
}

TEST_CASE("temperature 0 takes the likeliest token, the first if several are equal") {
  CHECK(drawn({.temperature = 0}) == std::map<std::int32_t, int>{{1, 4000}});
}

TEST_CASE("tokens are drawn in proportion to their probabilities") {
  const auto count = drawn({});
  const double all = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  CHECK(count.at(1) / 4000.0 == Approx(std::exp(3.0) / all).margin(0.03));
  CHECK(count.at(2) / 4000.0 == Approx(std::exp(2.0) / all).margin(0.03));
  CHECK(count.count(4) == 0);
  CHECK(drawn({.temperature = 100}).at(0) / 4000.0 == Approx(0.25).margin(0.06));  // the probabilities are nearly equal
  CHECK(drawn({.seed = 1}) != drawn({.seed = 2}));
  CHECK(drawn({.seed = 1}) == drawn({.seed = 1}));
}

TEST_CASE("top-k and top-p exclude the other tokens") {
  CHECK(drawn({.top_k = 2}).size() == 2);
  CHECK(drawn({.top_k = 2}).count(2) == 0);
  CHECK(drawn({.top_k = 1}) == std::map<std::int32_t, int>{{1, 4000}});
  CHECK(drawn({.top_p = 0.3}) == std::map<std::int32_t, int>{{1, 4000}});  // the probability of token 1 is 0.39
  CHECK(drawn({.top_p = 0.5}).size() == 2);
  CHECK(drawn({.top_p = 0.9}).size() == 3);
}

TEST_CASE("NaN and +infinity logits are refused, and tokens with -infinity are never drawn") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, std::numeric_limits<float>::quiet_NaN()})
    for (const double temperature : {0.0, 1.0})
      CHECK_THROWS_AS(sample(std::vector<float>{1, bad, 2}, {.temperature = temperature}, 0), Error);
  CHECK_THROWS_AS(sample(std::vector<float>{-infinity, -infinity}, {}, 0), Error);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(sample(std::vector<float>{-infinity, 1, 1}, {}, i) != 0);
  CHECK(drawn({.temperature = 1e-300}).size() <= 2);  // the two likeliest tokens have equal logits
  CHECK(drawn({.top_p = 0}) == std::map<std::int32_t, int>{{1, 4000}});
}

}  // namespace
}  // namespace chorale
