// A language made up from a seed, whose entropy is known: the loss of a model that reads it has a floor, and training is right when it
// arrives there. Endless, embedded, and small enough in what there is to learn that a small model gets there in minutes.
//
// A text begins with its title, a token that stands nowhere else. Every other token belongs to a class. The class of the next token follows
// from the last one or from the title, by five rules of fixed probability, each a permutation drawn from the seed; the token is then any of
// its class, by a power law:
//
//   title  ──────────────┬─ 0.25 ── permutation 3 ──┐
//                        └─ 0.10 ── permutation 4 ──┤
//   class of the last    ┬─ 0.35 ── permutation 0 ──┼── next class ── its r-th token, ∝ 1/(r + 1)²
//                        ├─ 0.20 ── permutation 1 ──┤
//                        └─ 0.10 ── permutation 2 ──┘
//
// So every position must attend to the first, however far it is: a model that cannot stays at `without_attention`. The pairs (title, last
// class) are a small Markov chain, so entropies are sums over it, not estimates. With 4096 tokens: 8 titles and 16 classes of some 256.
#pragma once
#include "src/data/tokens.hpp"

namespace chorale {

class SyntheticLanguage final : public TokenSource {
 public:
  SyntheticLanguage(std::int64_t vocabulary, std::uint64_t seed);

  std::string name() const override;
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t count() const override { return std::int64_t{1} << 50; }
  // Each sample is a text of its own and a pure function of (seed, sample); a longer read of it begins with the shorter.
  void read(std::int64_t sample, std::span<std::int32_t> out) const override;

  std::int64_t titles() const { return titles_; }
  std::int64_t classes() const { return classes_; }
  // In nats a token.
  double floor(std::int64_t sequence) const;                       // the least mean loss over the targets of a sample
  double entropy_rate() const { return rate_; }                    // where the floor goes as texts grow long
  double without_attention() const { return without_attention_; }  // the same for a model that sees only the last token
  // The language's own probability of `next`; the first token's last is the title.
  double probability(std::int32_t title, std::int32_t last, std::int32_t next) const;

 private:
  // A state is (title, class of the last token), the title itself being class 0 and the others from 1 on.
  using Distribution = std::vector<double>;
  std::size_t state(std::int64_t title, std::int64_t last) const {
    return static_cast<std::size_t>(title * (classes_ + 1) + last);
  }
  Distribution next_class(std::int64_t title, std::int64_t last) const;
  Distribution step(const Distribution& here) const;
  Distribution at_the_title() const;
  double nats_after(const Distribution& here) const;  // of the next token
  double nats_of(const Distribution& next_class) const;
  std::int64_t class_of(std::int32_t token) const { return token < titles_ ? 0 : (token - titles_) % classes_ + 1; }
  std::size_t size_of_class(std::int64_t c) const {
    return static_cast<std::size_t>((vocabulary_ - titles_ - (c - 1) + classes_ - 1) / classes_);
  }

  std::int64_t vocabulary_, classes_, titles_;
  std::uint64_t seed_;
  std::vector<std::vector<std::int64_t>> permutations_;  // one for each rule
  std::vector<double> below_;                            // cumulative sums of the power law
  std::vector<double> nats_of_class_;                    // entropy of a token of this class
  std::vector<double> nats_of_state_;                    // entropy of the next token
  double rate_ = 0, without_attention_ = 0;
};

}  // namespace chorale
