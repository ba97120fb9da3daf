#include "src/data/synthetic.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/base/random.hpp"
#include "src/data/sampler.hpp"

namespace chorale {
namespace {

constexpr std::uint32_t text_site = 0x0da7a7e7;  // the site (random.hpp) of these random numbers; no other code uses it
// The exponent of the power law. Rare tokens contribute little, so a model can get close to the floor before it learns them.
constexpr double exponent = 2;

struct Rule {
  double probability;
  bool from_title;  // whether the title determines the class; otherwise the last token does
};
constexpr Rule rules[] = {{0.35, false}, {0.20, false}, {0.10, false}, {0.25, true}, {0.10, true}};
constexpr double from_titles = 0.35;  // the total probability of the two title rules

double entropy(const std::vector<double>& probabilities) {
  double sum = 0;
  for (const double p : probabilities) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

// Returns the index that 32 random bits select. `below` holds the cumulative sums of the weights; their total need not be 1.
std::int64_t pick(std::span<const double> below, std::uint32_t bits) {
  return std::upper_bound(below.begin(), below.end() - 1, bits * 0x1p-32 * below.back()) - below.begin();
}

}  // namespace

SyntheticLanguage::SyntheticLanguage(std::int64_t vocabulary, std::uint64_t seed)
    : vocabulary_(vocabulary),
      classes_(std::clamp<std::int64_t>(vocabulary / 8, 4, 16)),
      titles_(classes_ / 2),
      seed_(seed) {
  if (vocabulary < 32 || vocabulary > std::int64_t{1} << 30)
    usage_error("the synthetic language cannot have this vocabulary", fmt::format("{} tokens", vocabulary),
                "choose 32 to 2^30");
  for (std::uint32_t rule = 0; rule < std::size(rules); ++rule) {
    const Permutation permutation(classes_, seed, rule);
    permutations_.emplace_back();
    for (std::int64_t c = 0; c < classes_; ++c) permutations_.back().push_back(permutation(c) + 1);
  }
  double sum = 0;
  for (std::size_t r = 1; r <= size_of_class(1); ++r) below_.push_back(sum += std::pow(static_cast<double>(r), -exponent));
  nats_of_class_.push_back(0);  // class 0, the title, is never drawn as a next token
  for (std::int64_t c = 1; c <= classes_; ++c) {
    Distribution law;
    for (std::size_t r = 0; r < size_of_class(c); ++r)
      law.push_back((below_[r] - (r ? below_[r - 1] : 0)) / below_[size_of_class(c) - 1]);
    nats_of_class_.push_back(entropy(law));
  }
  for (std::int64_t title = 0; title < titles_; ++title)
    for (std::int64_t last = 0; last <= classes_; ++last) nats_of_state_.push_back(nats_of(next_class(title, last)));

  Distribution here = at_the_title();  // iterates to the stationary state; half steps converge even if the chain is periodic
  for (double change = 1; change > 1e-14;) {
    const Distribution next = step(here);
    change = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      change += std::abs(next[i] - here[i]);
      here[i] = (here[i] + next[i]) / 2;
    }
  }
  rate_ = nats_after(here);
  for (std::int64_t last = 1; last <= classes_; ++last) {
    Distribution mixed(static_cast<std::size_t>(classes_ + 1));
    double seen = 0;
    for (std::int64_t title = 0; title < titles_; ++title) {
      const Distribution next = next_class(title, last);
      const double weight = here[state(title, last)];
      for (std::size_t c = 0; c < next.size(); ++c) mixed[c] += weight * next[c];
      seen += weight;
    }
    for (double& p : mixed) p /= seen > 0 ? seen : 1;
    without_attention_ += seen * nats_of(mixed);
  }
}

std::string SyntheticLanguage::name() const { return fmt::format("synthetic, seed {}", seed_); }

SyntheticLanguage::Distribution SyntheticLanguage::next_class(std::int64_t title, std::int64_t last) const {
  Distribution probabilities(static_cast<std::size_t>(classes_ + 1));
  for (std::size_t rule = 0; rule < std::size(rules); ++rule) {
    const auto& [probability, from_title] = rules[rule];
    if (last == 0 && !from_title) continue;  // only the title rules apply after the title
    const std::int64_t to = permutations_[rule][static_cast<std::size_t>(from_title ? title : last - 1)];
    probabilities[static_cast<std::size_t>(to)] += last == 0 ? probability / from_titles : probability;
  }
  return probabilities;
}

SyntheticLanguage::Distribution SyntheticLanguage::at_the_title() const {
  Distribution start(nats_of_state_.size());
  for (std::int64_t title = 0; title < titles_; ++title) start[state(title, 0)] = 1 / static_cast<double>(titles_);
  return start;
}

SyntheticLanguage::Distribution SyntheticLanguage::step(const Distribution& here) const {
  Distribution there(here.size());
  for (std::int64_t title = 0; title < titles_; ++title)
    for (std::int64_t last = 0; last <= classes_; ++last) {
      const double weight = here[state(title, last)];
      if (weight == 0) continue;
      const Distribution next = next_class(title, last);
      for (std::int64_t c = 1; c <= classes_; ++c) there[state(title, c)] += weight * next[static_cast<std::size_t>(c)];
    }
  return there;
}

double SyntheticLanguage::nats_of(const Distribution& next_class) const {
  double nats = entropy(next_class);
  for (std::size_t c = 1; c < next_class.size(); ++c) nats += next_class[c] * nats_of_class_[c];
  return nats;
}

double SyntheticLanguage::nats_after(const Distribution& here) const {
  double nats = 0;
  for (std::size_t i = 0; i < here.size(); ++i) nats += here[i] * nats_of_state_[i];
  return nats;
}

double SyntheticLanguage::floor(std::int64_t sequence) const {
  double sum = 0;
  Distribution here = at_the_title();
  for (std::int64_t target = 0; target < sequence; ++target) {
    sum += nats_after(here);
    here = step(here);
  }
  return sum / static_cast<double>(sequence);
}

double SyntheticLanguage::probability(std::int32_t title, std::int32_t last, std::int32_t next) const {
  if (next < titles_) return 0;
  const std::int64_t to = class_of(next);
  const auto rank = static_cast<std::size_t>((next - titles_) / classes_);
  return next_class(title, class_of(last))[static_cast<std::size_t>(to)] * (below_[rank] - (rank ? below_[rank - 1] : 0)) /
         below_[size_of_class(to) - 1];
}

void SyntheticLanguage::read(std::int64_t sample, std::span<std::int32_t> out) const {
  std::int64_t title = 0, last = 0;
  for (std::size_t position = 0; position < out.size(); ++position) {
    const Random random{.seed = seed_, .step = static_cast<std::uint32_t>(position), .site = text_site};
    const philox::Counter bits = random.four(static_cast<std::uint64_t>(sample));
    if (position == 0) {
      title = static_cast<std::int64_t>(std::uint64_t{bits[0]} * static_cast<std::uint64_t>(titles_) >> 32);
      out[0] = static_cast<std::int32_t>(title);
      continue;
    }
    const double drawn = bits[0] * 0x1p-32;
    double at = last == 0 ? 1 - from_titles * (1 - drawn) : drawn;
    std::size_t rule = 0;
    while (rule + 1 < std::size(rules) && at >= rules[rule].probability) at -= rules[rule++].probability;
    if (last == 0) rule = std::max<std::size_t>(rule, 3);  // guards against rounding errors in the sums
    last = permutations_[rule][static_cast<std::size_t>(rules[rule].from_title ? title : last - 1)];
    const std::int64_t rank = pick(std::span(below_).first(size_of_class(last)), bits[1]);
    out[position] = static_cast<std::int32_t>(titles_ + last - 1 + classes_ * rank);
  }
}

std::unique_ptr<TokenSource> synthetic_language(std::int64_t vocabulary, std::uint64_t seed) {
  return std::make_unique<SyntheticLanguage>(vocabulary, seed);
}

}  // namespace chorale
