#include "src/base/random.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace chorale;

// Expected values published with Random123 for philox4x32 with 10 rounds.
TEST_CASE("Philox gives its known answers") {
  CHECK(philox::block({0, 0, 0, 0}, {0, 0}) == philox::Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox::block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == philox::Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        philox::Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("an element's value does not depend on how the range is split") {
  const Random random{.seed = 42, .step = 3, .site = 9};
  std::vector<float> whole(1001);
  random.fill_uniform(0, whole);
  for (const std::size_t cut : {1u, 2u, 3u, 5u, 500u}) {
    std::vector<float> parts(whole.size());
    for (std::size_t first = 0; first < parts.size(); first += cut)
      random.fill_uniform(first, std::span(parts).subspan(first, std::min(cut, parts.size() - first)));
    CHECK(parts == whole);
  }
  for (std::size_t i = 0; i < whole.size(); ++i) REQUIRE(whole[i] == random.uniform(i));
  for (const std::uint64_t first :
       {0ull, 3ull, (1ull << 34) - 70}) {  // the counter's lower half overflows after 2^34 elements
    std::vector<std::uint32_t> bits(200);
    random.fill_bits(first, bits);
    for (std::size_t i = 0; i < bits.size(); ++i) REQUIRE(bits[i] == random.bits(first + i));
  }
}

TEST_CASE("seed, step, site and the upper half of the index each change the numbers") {
  const Random random{.seed = 1};
  CHECK(random.bits(0) != Random{.seed = 2}.bits(0));
  CHECK(random.bits(0) != Random{.seed = 1ull << 32 | 1}.bits(0));
  CHECK(random.bits(0) != (Random{.seed = 1, .step = 1}.bits(0)));
  CHECK(random.bits(0) != (Random{.seed = 1, .site = 1}.bits(0)));
  CHECK(random.bits(0) != random.bits(1ull << 34));
}

TEST_CASE("uniform values fill [0, 1) evenly") {
  const Random random{.seed = 7};
  std::vector<float> values(1 << 20);
  random.fill_uniform(0, values);
  std::vector<int> bins(16);
  double sum = 0;
  for (const float v : values) {
    REQUIRE((v >= 0 && v < 1));
    ++bins[static_cast<std::size_t>(v * 16)];
    sum += v;
  }
  CHECK(sum / values.size() == Approx(0.5).margin(1.5e-3));  // five standard errors of the mean: 5 · 0.289 / 1024
  for (const int bin : bins) CHECK(bin == Approx(65536).margin(5 * 256));
}

TEST_CASE("how fast random numbers come", "[!benchmark]") {
  const Random random{.seed = 7};
  std::vector<float> values(1 << 16);
  BENCHMARK("65536 uniform floats") {
    random.fill_uniform(0, values);
    return values[100];
  };
}
