// Tests when a slow rank is reported. A rank that takes twice as long to compute must be named exactly once. A difference of
// 20 % must not be reported.
#include "experiments/train/stragglers.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale::train {
namespace {

// Simulated steps. Rank `slow` takes `factor` times as long as the other ranks (−1: no rank is slow). If `slow` is −2, even
// ranks are 20 % faster than normal, and odd ranks are 20 % slower. A little noise is added to all times.
struct Steps {
  explicit Steps(const std::string& word, int slow = -1, double factor = 2) {
    const Layout layout = parse_layout(word, 0);
    const PlanRequest request{.options = test::options_for("fast", layout), .layout = layout};
    finder.emplace(request);
    for (int rank = 0; rank < static_cast<int>(layout.ranks()); ++rank) {
      const double work = layout.stages() > 1 ? plan_rank(request, rank).flops : 1e6;
      const double pace = slow == -2 ? (rank % 2 == 0 ? 0.8 : 1.2) : rank == slow ? factor : 1;
      usual.push_back(1e-9 * work * pace);
    }
  }
  auto next() {
    std::vector<RankShare> shares(usual.size());
    for (std::size_t rank = 0; rank < usual.size(); ++rank) {
      shares[rank].result.forward = usual[rank] * noise(random);
      shares[rank].result.exposed = 1e-3;  // time spent waiting does not count
    }
    return finder->step(shares);
  }
  std::optional<Stragglers> finder;
  std::vector<double> usual;
  std::mt19937 random{1};
  std::uniform_real_distribution<double> noise{0.95, 1.05};
};

}  // namespace

TEST_CASE("a rank that is twice as slow is named within 20 steps, once") {
  for (const char* word : {"dp2", "dp4", "dp2.tp2", "dp1.pp2", "dp1.pp4", "dp2.pp2.z1", "dp1.tp2.pp2"})
    for (int slow = 0; slow < static_cast<int>(parse_layout(word, 0).ranks()); ++slow) {
      Steps steps(word, slow);
      std::vector<std::string> said;
      for (int i = 0; i < 20; ++i)
        for (const auto& [rank, words] : steps.next()) said.push_back(fmt::format("rank {}: {}", rank, words));
      INFO(word << ", rank " << slow);
      REQUIRE(said.size() == 1);
      CHECK_THAT(said[0], Catch::StartsWith(fmt::format("rank {}: it computes ", slow)));
    }
}

TEST_CASE("ranks that differ by 20 % are no stragglers") {
  for (const char* word : {"dp1", "dp2", "dp4", "dp2.tp2", "dp1.pp2", "dp1.pp4", "dp2.pp2.z1"}) {
    Steps steps(word, -2);
    INFO(word);
    for (int i = 0; i < 100; ++i) CHECK(steps.next().empty());
  }
}

TEST_CASE("a rank that recovers and becomes slow again is named again") {
  Steps steps("dp2", 1);
  std::size_t lines = 0;
  for (int i = 0; i < 60; ++i) {
    if (i % 20 == 0) steps.usual[1] = steps.usual[0] * (i == 20 ? 1 : 2);
    lines += steps.next().size();
  }
  CHECK(lines == 2);
}

}  // namespace chorale::train
