// A language generated from a seed. The entropy of the language is known, so the loss of a model has a known lower bound
// (the floor). Correct training reaches the floor. The language is endless and needs no files. A small model reaches the
// floor in minutes, because there is little to learn.
//
// A text starts with its title, a token that occurs nowhere else in the text. Every other token belongs to a class. One of
// five rules, chosen with fixed probabilities, determines the class of the next token from the last token's class or from
// the title. Each rule is a permutation drawn from the seed. The next token is then drawn from this class by a power law:
//
//   title  ──────────────┬─ 0.25 ── permutation 3 ──┐
//                        └─ 0.10 ── permutation 4 ──┤
//   class of the last    ┬─ 0.35 ── permutation 0 ──┼── next class ── its r-th token, ∝ 1/(r + 1)²
//                        ├─ 0.20 ── permutation 1 ──┤
//                        └─ 0.10 ── permutation 2 ──┘
//
// Good predictions therefore require that every position attends to the title, at any distance. A model that cannot do this
// does not get below the loss `without_attention`. The pairs (title, last class) form a small Markov chain, so entropies are
// exact sums over the states of the chain, not estimates. A vocabulary of 4096 has 8 titles and 16 classes of about 256
// tokens each.
#pragma once
#include "src/data/tokens.hpp"

namespace chorale {

class SyntheticLanguage final : public TokenSource {
 public:
  SyntheticLanguage(std::int64_t vocabulary, std::uint64_t seed);

  std::string name() const override;
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t count() const override { return std::int64_t{1} << 50; }
  // Each sample is a separate text and a pure function of (seed, sample). A longer `out` starts with the same tokens as a
  // shorter `out`.
  void read(std::int64_t sample, std::span<std::int32_t> out) const override;

  std::int64_t titles() const { return titles_; }
  std::int64_t classes() const { return classes_; }
  // Losses in nats per token.
  double floor(std::int64_t sequence) const;     // the lowest possible mean loss over a sample's targets
  double entropy_rate() const { return rate_; }  // the limit of the floor for long texts
  // The lowest possible loss on long texts for a model that uses only the last token.
  double without_attention() const { return without_attention_; }
  // The probability that `next` follows `last` in a text with this title. For the first token after the title, `last` is
  // the title.
  double probability(std::int32_t title, std::int32_t last, std::int32_t next) const;

 private:
  // A state of the Markov chain is a pair (title, class of the last token). The title itself has class 0. The classes of all
  // other tokens are numbered from 1.
  using Distribution = std::vector<double>;
  std::size_t state(std::int64_t title, std::int64_t last) const {
    return static_cast<std::size_t>(title * (classes_ + 1) + last);
  }
  Distribution next_class(std::int64_t title, std::int64_t last) const;
  Distribution step(const Distribution& here) const;
  Distribution at_the_title() const;
  double nats_after(const Distribution& here) const;  // entropy of the next token if the states have the probabilities
                                                      // `here`
  double nats_of(const Distribution& next_class) const;
  std::int64_t class_of(std::int32_t token) const { return token < titles_ ? 0 : (token - titles_) % classes_ + 1; }
  std::size_t size_of_class(std::int64_t c) const {
    return static_cast<std::size_t>((vocabulary_ - titles_ - (c - 1) + classes_ - 1) / classes_);
  }

  std::int64_t vocabulary_, classes_, titles_;
  std::uint64_t seed_;
  std::vector<std::vector<std::int64_t>> permutations_;  // one per rule
  std::vector<double> below_;                            // cumulative sums of the power law
  std::vector<double> nats_of_class_;                    // indexed by class: entropy of drawing a token from this class
  std::vector<double> nats_of_state_;                    // indexed by state: entropy of the next token
  double rate_ = 0, without_attention_ = 0;
};

}  // namespace chorale
