// A language made up from a seed, whose entropy is known: the loss of a model that reads it has a floor, and training is right when it
// arrives there. Endless, embedded, and small enough in what there is to learn that a small model gets there in minutes.
//
// Every token belongs to a class, token % classes. The next class follows one of the last two, by five rules that hold with fixed
// probabilities, each a permutation of the classes drawn from the seed; the token is then any of its class, by Zipf's law:
//
//   class of the token before    b   ──┬─ 0.25 ── permutation 3 ──┐
//                                      └─ 0.15 ── permutation 4 ──┤
//   class of the last token      a   ──┬─ 0.35 ── permutation 0 ──┼── next class ── its r-th token, ∝ 1/(r + 1)^1.5
//                                      ├─ 0.15 ── permutation 1 ──┤
//                                      └─ 0.10 ── permutation 2 ──┘
//
// A model without attention sees only a, and stays visibly above the floor. The pairs (b, a) are a Markov chain of classes² states whose stationary
// distribution is computed once; so is every entropy. With 4096 tokens: 32 classes of 128; with 480: 32 of 15.
#pragma once
#include "src/data/tokens.hpp"

namespace chorale {

class SyntheticLanguage final : public TokenSource {
 public:
  SyntheticLanguage(std::int64_t vocabulary, std::uint64_t seed);

  std::string name() const override;
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t count() const override { return std::int64_t{1} << 50; }
  // Each sample is a text of its own and a pure function of (seed, sample); longer reads of it begin with the shorter.
  void read(std::int64_t sample, std::span<std::int32_t> out) const override;

  std::int64_t classes() const { return classes_; }
  // In nats a token. The rate is that of a long text; at the second token of a sample only one is known, which the floor counts.
  double entropy_rate() const { return next_class_entropy_ + token_entropy_; }
  double floor(std::int64_t sequence) const;  // the least mean loss over the targets of a sample
  // The language's own probability of `next`; `before` is −1 where nothing is known of it.
  double probability(std::int32_t before, std::int32_t last, std::int32_t next) const;

 private:
  std::vector<double> next_class(std::int64_t before, std::int64_t last) const;  // its probabilities
  void find_stationary();
  void find_entropies();
  std::size_t pair(std::int64_t before, std::int64_t last) const {
    return static_cast<std::size_t>(before * classes_ + last);
  }

  std::int64_t vocabulary_, classes_;
  std::uint64_t seed_;
  std::vector<std::vector<std::int64_t>> permutations_;  // one for each rule
  std::vector<double> stationary_;                       // of pairs (before, last)
  std::vector<double> pairs_below_;                      // its cumulative sums
  std::vector<double> zipf_below_;                       // of 1/(r + 1)^1.5
  double next_class_entropy_ = 0, second_class_entropy_ = 0, token_entropy_ = 0;
};

}  // namespace chorale
