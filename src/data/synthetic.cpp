#include "src/data/synthetic.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/base/random.hpp"
#include "src/data/sampler.hpp"

namespace chorale {
namespace {

constexpr std::uint32_t text_site = 0x0da7a7e7;  // of the random numbers: no other part draws there
constexpr double zipf_exponent = 1.5;            // the rarest of 128 tokens still comes ten times in a million

struct Rule {
  double probability;
  bool from_before;  // else from the last token
};
constexpr Rule rules[] = {{0.35, false}, {0.15, false}, {0.10, false}, {0.25, true}, {0.15, true}};

double plogp(double p) { return p > 0 ? -p * std::log(p) : 0; }

double entropy(const std::vector<double>& probabilities) {
  double sum = 0;
  for (const double p : probabilities) sum += plogp(p);
  return sum;
}

// The element that a number in [0, 1) falls on, by cumulative sums of any total.
std::int64_t pick(std::span<const double> below, std::uint32_t bits) {
  const double at = bits * 0x1p-32 * below.back();
  return std::upper_bound(below.begin(), below.end() - 1, at) - below.begin();
}

std::vector<double> cumulative(const std::vector<double>& weights) {
  std::vector<double> sums(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sums[i] = sum += weights[i];
  return sums;
}

}  // namespace

SyntheticLanguage::SyntheticLanguage(std::int64_t vocabulary, std::uint64_t seed)
    : vocabulary_(vocabulary), classes_(std::clamp<std::int64_t>(vocabulary / 8, 4, 32)), seed_(seed) {
  if (vocabulary < 32 || vocabulary > std::int64_t{1} << 30)
    usage_error("the synthetic language cannot have this vocabulary", fmt::format("{} tokens", vocabulary),
                "choose 32 to 2^30");
  for (std::uint32_t rule = 0; rule < std::size(rules); ++rule) {
    const Permutation permutation(classes_, seed, rule);
    permutations_.emplace_back();
    for (std::int64_t c = 0; c < classes_; ++c) permutations_.back().push_back(permutation(c));
  }
  const std::int64_t largest = (vocabulary + classes_ - 1) / classes_;
  std::vector<double> weights;
  for (std::int64_t r = 0; r < largest; ++r) weights.push_back(std::pow(static_cast<double>(r + 1), -zipf_exponent));
  zipf_below_ = cumulative(weights);
  find_stationary();
  find_entropies();
}

std::string SyntheticLanguage::name() const { return fmt::format("synthetic, seed {}", seed_); }

std::vector<double> SyntheticLanguage::next_class(std::int64_t before, std::int64_t last) const {
  std::vector<double> probabilities(static_cast<std::size_t>(classes_));
  for (std::size_t rule = 0; rule < std::size(rules); ++rule) {
    const auto from = static_cast<std::size_t>(rules[rule].from_before ? before : last);
    probabilities[static_cast<std::size_t>(permutations_[rule][from])] += rules[rule].probability;
  }
  return probabilities;
}

// Power iteration. A step mixes the old with the new, so that a chain that goes in circles settles as well.
void SyntheticLanguage::find_stationary() {
  const auto pairs = static_cast<std::size_t>(classes_ * classes_);
  stationary_.assign(pairs, 1 / static_cast<double>(pairs));
  for (double change = 1; change > 1e-14;) {
    std::vector<double> next(pairs);
    for (std::int64_t before = 0; before < classes_; ++before)
      for (std::int64_t last = 0; last < classes_; ++last)
        for (std::size_t rule = 0; rule < std::size(rules); ++rule) {
          const auto from = static_cast<std::size_t>(rules[rule].from_before ? before : last);
          next[pair(last, permutations_[rule][from])] += rules[rule].probability * stationary_[pair(before, last)];
        }
    change = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      change += std::abs(next[i] - stationary_[i]);
      stationary_[i] = (stationary_[i] + next[i]) / 2;
    }
  }
  pairs_below_ = cumulative(stationary_);
}

void SyntheticLanguage::find_entropies() {
  for (std::int64_t last = 0; last < classes_; ++last) {
    std::vector<double> known_last(static_cast<std::size_t>(classes_));  // the next class, where `before` is not known
    for (std::int64_t before = 0; before < classes_; ++before) {
      const std::vector<double> next = next_class(before, last);
      const double here = stationary_[pair(before, last)];
      next_class_entropy_ += here * entropy(next);
      for (std::size_t c = 0; c < next.size(); ++c) known_last[c] += here * next[c];
    }
    // Each class is as frequent as any other, for permutations keep it so: known_last is a probability given `last`, over classes_.
    for (double& p : known_last) p *= static_cast<double>(classes_);
    second_class_entropy_ += entropy(known_last) / static_cast<double>(classes_);
  }
  for (std::int64_t c = 0; c < classes_; ++c) {
    const auto size = static_cast<std::size_t>((vocabulary_ - c + classes_ - 1) / classes_);
    double sum = 0;
    for (std::size_t r = 0; r < size; ++r)
      sum += plogp((zipf_below_[r] - (r ? zipf_below_[r - 1] : 0)) / zipf_below_[size - 1]);
    token_entropy_ += sum / static_cast<double>(classes_);
  }
}

double SyntheticLanguage::floor(std::int64_t sequence) const {
  return entropy_rate() + (second_class_entropy_ - next_class_entropy_) / static_cast<double>(sequence);
}

double SyntheticLanguage::probability(std::int32_t before, std::int32_t last, std::int32_t next) const {
  const std::int64_t to = next % classes_, from = last % classes_;
  double of_class = 0;
  if (before >= 0)
    of_class = next_class(before % classes_, from)[static_cast<std::size_t>(to)];
  else
    for (std::int64_t b = 0; b < classes_; ++b)
      of_class +=
          stationary_[pair(b, from)] * static_cast<double>(classes_) * next_class(b, from)[static_cast<std::size_t>(to)];
  const auto rank = static_cast<std::size_t>(next / classes_);
  const auto size = static_cast<std::size_t>((vocabulary_ - to + classes_ - 1) / classes_);
  return of_class * (zipf_below_[rank] - (rank ? zipf_below_[rank - 1] : 0)) / zipf_below_[size - 1];
}

// The classes of the first two tokens are a pair from the stationary distribution, so that every position of a text is like every other.
void SyntheticLanguage::read(std::int64_t sample, std::span<std::int32_t> out) const {
  std::int64_t before = 0, last = 0;
  for (std::size_t position = 0; position < out.size(); ++position) {
    const Random random{.seed = seed_, .step = static_cast<std::uint32_t>(position), .site = text_site};
    const philox::Counter bits = random.four(static_cast<std::uint64_t>(sample));
    if (position == 0) {
      const std::int64_t start = pick(pairs_below_, bits[0]);
      before = start / classes_, last = start % classes_;
    } else {
      double at = bits[0] * 0x1p-32;
      std::size_t rule = 0;
      while (rule + 1 < std::size(rules) && at >= rules[rule].probability) at -= rules[rule++].probability;
      const std::int64_t next = permutations_[rule][static_cast<std::size_t>(rules[rule].from_before ? before : last)];
      before = last, last = next;
    }
    const auto size = static_cast<std::size_t>((vocabulary_ - last + classes_ - 1) / classes_);
    out[position] = static_cast<std::int32_t>(last + classes_ * pick(std::span(zipf_below_).first(size), bits[1]));
  }
}

}  // namespace chorale
