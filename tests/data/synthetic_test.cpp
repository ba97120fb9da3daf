#include "src/data/synthetic.hpp"

#include <cmath>
#include <map>

#include "tests/catch.hpp"

using namespace chorale;

namespace {

std::vector<std::int32_t> read(const TokenSource& source, std::int64_t sample, std::size_t length) {
  std::vector<std::int32_t> tokens(length);
  source.read(sample, tokens);
  return tokens;
}

}  // namespace

TEST_CASE("a text of the synthetic language depends on seed and sample alone") {
  const SyntheticLanguage language(480, 7);
  const auto text = read(language, 1000, 257);
  CHECK(read(language, 1000, 257) == text);
  CHECK(read(SyntheticLanguage(480, 7), 1000, 257) == text);
  CHECK(read(language, 1000, 65) == std::vector(text.begin(), text.begin() + 65));
  CHECK(read(language, 1001, 257) != text);
  CHECK(read(language, 1000 + (std::int64_t{1} << 40), 257) != text);
  CHECK(read(SyntheticLanguage(480, 8), 1000, 257) != text);
}

TEST_CASE("the synthetic language has the entropy it says, by its own probabilities") {
  for (const std::int64_t vocabulary : {32, 100, 480, 4096}) {
    const SyntheticLanguage language(vocabulary, 42);
    constexpr std::size_t length = 65, texts = 4000;
    double sum = 0, squares = 0;
    for (std::size_t sample = 0; sample < texts; ++sample) {
      const auto text = read(language, static_cast<std::int64_t>(sample), length);
      double loss = 0;
      for (std::size_t i = 1; i < length; ++i)
        loss -= std::log(language.probability(i > 1 ? text[i - 2] : -1, text[i - 1], text[i])) / (length - 1);
      sum += loss, squares += loss * loss;
    }
    const double mean = sum / texts, error = std::sqrt((squares / texts - mean * mean) / texts);
    INFO(vocabulary << " tokens, " << language.classes() << " classes: " << mean << " ± " << error);
    CHECK(std::abs(mean - language.floor(length - 1)) < 4 * error);
    CHECK(language.floor(length - 1) > language.entropy_rate());
    CHECK(language.floor(1 << 30) == Approx(language.entropy_rate()));
  }
}

TEST_CASE("the synthetic language has the entropy it says, by counting alone") {
  // Few tokens, so that every context is seen often: 32² contexts with 32 tokens after each.
  const SyntheticLanguage language(32, 3);
  std::map<std::pair<int, int>, std::vector<double>> after;
  constexpr std::size_t length = 1001;
  for (std::int64_t sample = 0; sample < 2000; ++sample) {
    const auto text = read(language, sample, length);
    for (std::size_t i = 2; i < length; ++i) {
      auto& counts = after[{text[i - 2], text[i - 1]}];
      counts.resize(32);
      ++counts[static_cast<std::size_t>(text[i])];
    }
  }
  double nats = 0, total = 0;
  for (const auto& [context, counts] : after) {
    double seen = 0;
    for (const double n : counts) seen += n;
    for (const double n : counts) nats -= n > 0 ? n * std::log(n / seen) : 0;
    total += seen;
  }
  CHECK(nats / total == Approx(language.entropy_rate()).epsilon(0.005));
}

TEST_CASE("the synthetic language's probabilities add up to one") {
  const SyntheticLanguage language(100, 5);
  for (const int before : {-1, 0, 17, 99})
    for (const int last : {0, 31, 98}) {
      double sum = 0;
      for (int next = 0; next < 100; ++next) sum += language.probability(before, last, next);
      CHECK(sum == Approx(1));
    }
}

TEST_CASE("a model must attend to the token before the last to reach the floor") {
  const SyntheticLanguage language(4096, 1);
  CHECK(language.floor(1) > 1.05 * language.entropy_rate());  // its second token, where only one is known
}

TEST_CASE("a vocabulary too small for the synthetic language is refused") {
  CHECK_THROWS_WITH(SyntheticLanguage(31, 0), says("31 tokens") && says("choose 32"));
}

TEST_CASE("a batch has the tokens of its samples, and the next of each") {
  const SyntheticLanguage language(64, 0);
  const std::vector<std::int64_t> samples{5, 3};
  std::vector<std::int32_t> inputs(8), targets(8);
  fill_batch(language, samples, 4, inputs, targets);
  for (std::size_t row = 0; row < 2; ++row) {
    const auto text = read(language, samples[row], 5);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(inputs[4 * row + i] == text[i]);
      CHECK(targets[4 * row + i] == text[i + 1]);
    }
  }
  CHECK_THROWS_WITH(fill_batch(language, samples, 5, inputs, targets), says("do not fill"));
}
