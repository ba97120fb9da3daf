#include "src/data/synthetic.hpp"

#include <algorithm>
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

TEST_CASE("the texts have the stated entropy by the language's own probabilities") {
  for (const std::int64_t vocabulary : {32, 100, 480, 4096})
    for (const std::size_t length : {2u, 65u}) {
      const SyntheticLanguage language(vocabulary, 42);
      const std::size_t texts = 200'000 / length;
      double sum = 0, squares = 0;
      for (std::size_t sample = 0; sample < texts; ++sample) {
        const auto text = read(language, static_cast<std::int64_t>(sample), length);
        double loss = 0;
        for (std::size_t i = 1; i < length; ++i)
          loss -= std::log(language.probability(text[0], text[i - 1], text[i])) / static_cast<double>(length - 1);
        sum += loss;
        squares += loss * loss;
      }
      const double n = static_cast<double>(texts), mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
      INFO(vocabulary << " tokens, " << language.classes() << " classes: " << mean << " ± " << error);
      CHECK(std::abs(mean - language.floor(static_cast<std::int64_t>(length) - 1)) < 4 * error);
      CHECK(error < 0.01);
    }
}

TEST_CASE("the texts have the stated entropy by counts of their tokens alone") {
  const SyntheticLanguage language(32, 3);  // few tokens, so that every context occurs often
  constexpr std::size_t length = 1001;
  std::map<std::pair<int, int>, std::vector<double>> with_title;
  std::map<int, std::vector<double>> without;
  const auto count = [](std::vector<double>& counts, std::int32_t token) {
    counts.resize(32);
    ++counts[static_cast<std::size_t>(token)];
  };
  for (std::int64_t sample = 0; sample < 2000; ++sample) {
    const auto text = read(language, sample, length);
    for (std::size_t i = 2; i < length; ++i) {
      count(with_title[{text[0], text[i - 1]}], text[i]);
      count(without[text[i - 1]], text[i]);
    }
  }
  const auto nats = [](const auto& contexts) {
    double sum = 0, total = 0;
    for (const auto& [context, counts] : contexts) {
      double seen = 0;
      for (const double n : counts) seen += n;
      for (const double n : counts) sum -= n > 0 ? n * std::log(n / seen) : 0;
      total += seen;
    }
    return sum / total;
  };
  CHECK(nats(with_title) == Approx(language.entropy_rate()).epsilon(0.002));
  CHECK(nats(without) == Approx(language.without_attention()).epsilon(0.002));
}

TEST_CASE("the synthetic language's probabilities add up to one") {
  const SyntheticLanguage language(100, 5);
  for (const std::int32_t title : {0, 5})
    for (const std::int32_t last : {title, 6, 31, 99}) {
      double sum = 0;
      for (std::int32_t next = 0; next < 100; ++next) sum += language.probability(title, last, next);
      CHECK(sum == Approx(1));
    }
}

TEST_CASE("titles occur first and nowhere else, and every token occurs") {
  const SyntheticLanguage language(200, 9);
  std::vector<int> seen(200);
  for (std::int64_t sample = 0; sample < 2000; ++sample) {
    const auto text = read(language, sample, 257);
    REQUIRE(text[0] < language.titles());
    REQUIRE(*std::min_element(text.begin() + 1, text.end()) >= language.titles());
    for (const std::int32_t token : text) ++seen[static_cast<std::size_t>(token)];
  }
  CHECK(std::count(seen.begin(), seen.end(), 0) == 0);
}

TEST_CASE("the entropy rate is well below the loss that a model without attention can reach") {
  for (const std::int64_t vocabulary : {480, 4096})
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
      const SyntheticLanguage language(vocabulary, seed);
      CHECK(language.without_attention() > 1.1 * language.entropy_rate());
      CHECK(language.floor(1 << 14) == Approx(language.entropy_rate()).epsilon(1e-3));
      CHECK(language.floor(256) < std::log(vocabulary) / 2);
    }
}

TEST_CASE("a vocabulary too small for the synthetic language is refused") {
  CHECK_THROWS_WITH(SyntheticLanguage(31, 0), says("31 tokens") && says("choose 32"));
}

TEST_CASE("the inputs of a batch are the tokens of its samples, and the targets are the next tokens") {
  const SyntheticLanguage language(64, 0);
  const std::vector<std::int64_t> samples{5, 3};
  std::vector<std::int32_t> inputs(8), targets(8);
  fill_batch(language, samples, 4, {inputs, targets});
  for (std::size_t row = 0; row < 2; ++row) {
    const auto text = read(language, samples[row], 5);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(inputs[4 * row + i] == text[i]);
      CHECK(targets[4 * row + i] == text[i + 1]);
    }
  }
  CHECK_THROWS_WITH(fill_batch(language, samples, 5, {inputs, targets}), says("do not fill"));
}
