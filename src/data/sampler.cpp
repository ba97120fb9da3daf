#include "src/data/sampler.hpp"

#include <algorithm>
#include <bit>

#include "src/base/error.hpp"
#include "src/base/random.hpp"

namespace chorale {
namespace {

constexpr std::uint32_t order_site = 0x0da7a0de;  // the site (random.hpp) of these random numbers; no other code uses it
constexpr std::uint64_t rounds = 8;               // four rounds are enough for large halves; small halves need eight

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint32_t number)
    : size_(size), seed_(seed), number_(number) {
  require(size > 0, "a permutation needs at least one element, not {}", size);
  half_bits_ = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size - 1)) + 1) / 2);
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  require(index >= 0 && index < size_, "element {} is outside the permutation of {}", index, size_);
  const Random random{.seed = seed_, .step = number_, .site = order_site};
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t mixed = left ^ (random.four(round << 32 | right)[0] & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

Sampler::Sampler(std::int64_t samples, std::uint64_t seed, double held_out) : samples_(samples), seed_(seed) {
  require(held_out >= 0 && held_out < 1, "the held-out fraction {} is not in [0, 1)", held_out);
  const auto held = static_cast<std::int64_t>(static_cast<double>(samples) * held_out);
  training_ = samples - (held_out > 0 ? std::max<std::int64_t>(1, held) : 0);  // a requested validation set is never empty
  if (training_ < 1)
    usage_error("the data has too few samples to train on",
                fmt::format("{} samples, of which {} are held out for validation", samples, samples - training_),
                "give it more tokens, shorter sequences, or a smaller validation fraction");
}

std::int64_t Sampler::training_sample(std::int64_t consumed) const {
  require(consumed >= 0, "the number of consumed samples cannot be {}", consumed);
  return Permutation(training_, seed_, static_cast<std::uint32_t>(epoch(consumed)))(consumed % training_);
}

std::int64_t Sampler::validation_sample(std::int64_t index) const {
  require(validation() > 0, "no sample was held out for validation");
  return training_ + index % validation();
}

}  // namespace chorale
