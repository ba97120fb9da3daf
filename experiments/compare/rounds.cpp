#include "experiments/compare/rounds.hpp"

#include <algorithm>
#include <random>

#include "experiments/common/random_order.hpp"

namespace chorale::compare {
namespace {

bool seeds_are_samples(const Suite& suite) {
  return suite.metric != report::by_speed && std::ranges::count(suite.varied, "seed") > 0;
}

// Returns the runs of each round; these rounds together are one repetition.
std::vector<std::vector<const SuiteRun*>> rounds_of(const Suite& suite) {
  std::vector<std::string> seeds;  // in the order of the file
  std::vector<std::vector<const SuiteRun*>> rounds(1);
  for (const SuiteRun& run : suite.runs) {
    const std::string seed = seeds_are_samples(suite) ? run.text_of("seed") : "";
    if (!seed.empty() && !std::ranges::count(seeds, seed)) seeds.push_back(seed);
    const auto round = seed.empty() ? 0 : static_cast<std::size_t>(std::ranges::find(seeds, seed) - seeds.begin());
    rounds.resize(std::max(rounds.size(), round + 1));
    rounds[round].push_back(&run);
  }
  return rounds;
}

}  // namespace

std::vector<Repetition> in_rounds(const Suite& suite, int started, std::int64_t seed) {
  std::vector<Repetition> turns;
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::int64_t number = 0;
  for (std::int64_t repetition = 1; repetition <= suite.repetitions; ++repetition)
    for (const auto& round : rounds_of(suite)) {
      ++number;
      for (const std::size_t i : random_order(round.size(), random))
        turns.push_back({round[i], repetition, round[i]->processes(started), number});
    }
  return turns;
}

std::string name_of_round(const Suite& suite) {
  if (rounds_of(suite).size() == 1) return "repetition";
  return suite.repetitions == 1 ? "seed" : "round";
}

}  // namespace chorale::compare
