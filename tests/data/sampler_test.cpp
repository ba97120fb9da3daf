#include "src/data/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("a permutation of any size reaches every element once") {
  for (std::int64_t size = 1; size <= 70; ++size)
    for (const std::int64_t n : {size, 997 * size}) {
      const Permutation permutation(n, 11, 3);
      std::vector<bool> met(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t to = permutation(i);
        const bool is_new = to >= 0 && to < n && !met[static_cast<std::size_t>(to)];
        if (!is_new) FAIL(i << " of " << n << " goes to " << to);
        met[static_cast<std::size_t>(to)] = true;
      }
    }
}

TEST_CASE("a permutation of 2^50 elements needs no table") {
  const Permutation permutation(std::int64_t{1} << 50, 1, 0);
  CHECK(permutation(0) != permutation(1));
  CHECK_THROWS_WITH(permutation(std::int64_t{1} << 50), says("is outside the permutation of"));
}

TEST_CASE("over many seeds, a permutation maps each index to every index equally often") {
  // With 16000 keys, each of the 10 × 10 pairs (from, to) is expected 1600 times. Five standard deviations are 190.
  std::vector<int> met(100);
  for (std::uint64_t seed = 0; seed < 16000; ++seed)
    for (int from = 0; from < 10; ++from) ++met[static_cast<std::size_t>(10 * from + Permutation(10, seed, 0)(from))];
  for (const int times : met) CHECK(std::abs(times - 1600) < 190);
}

TEST_CASE("each epoch has every training sample once, in a different order") {
  const Sampler sampler(103, 5, 0.1);
  CHECK(sampler.training() == 93);
  CHECK(sampler.validation() == 10);
  std::vector<std::vector<std::int64_t>> epochs(3);
  for (std::int64_t k = 0; k < 3 * 93; ++k) {
    CHECK(sampler.epoch(k) == k / 93);
    epochs[static_cast<std::size_t>(k / 93)].push_back(sampler.training_sample(k));
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (std::size_t i = 0; i < epoch.size(); ++i) CHECK(epoch[i] == static_cast<std::int64_t>(i));
  }
  CHECK(sampler.training_sample(50) == Sampler(103, 5, 0.1).training_sample(50));
  std::vector<std::int64_t> other;
  for (std::int64_t k = 0; k < 93; ++k)
    other.push_back(Sampler(103, 6, 0.1).training_sample(k) - sampler.training_sample(k));
  CHECK(std::count(other.begin(), other.end(), 0) < 20);  // a different seed gives a different order
}

TEST_CASE("validation reads the held-out samples, in order") {
  const Sampler sampler(103, 5, 0.1);
  for (std::int64_t i = 0; i < 25; ++i) CHECK(sampler.validation_sample(i) == 93 + i % 10);
  CHECK(Sampler(20, 0, 0.01).validation() == 1);
  CHECK(Sampler(20, 0, 0).validation() == 0);
  CHECK_THROWS_WITH(Sampler(20, 0, 0).validation_sample(0), says("no sample was held out"));
}

TEST_CASE("too few samples are refused") {
  CHECK_THROWS_WITH(Sampler(0, 0, 0), says("too few samples"));
  CHECK_THROWS_WITH(Sampler(1, 0, 0.1), says("1 samples, of which 1 are held out"));
}
