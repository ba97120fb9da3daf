// Tests balanced partitions, which divide packed documents among context-parallel ranks so that loads are similar. Covers
// the assignment of blocks to ranks and the load balance. Training with balanced partitions is compared with training on one
// rank.
#include "parallel/context/balanced_cut.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "layers/context.hpp"
#include "parallel/plan/plan.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::int64_t>;
using Positions = std::vector<std::int32_t>;

// Returns each token's position in its document, for samples of random documents.
Positions positions_of(std::int64_t samples, std::int64_t sequence, std::int64_t mean, std::int64_t first_sample = 0) {
  const auto length = static_cast<std::size_t>(sequence);
  Positions inputs(length), targets(length), all(length * static_cast<std::size_t>(samples));
  for (std::int64_t sample = 0; sample < samples; ++sample)
    Documents::random(mean).mark((first_sample + sample) * sequence, inputs, targets,
                                 std::span(all).subspan(static_cast<std::size_t>(sample) * length, length));
  return all;
}

std::span<const std::int32_t> sample_of(const Positions& positions, std::size_t sample, std::int64_t sequence) {
  return std::span(positions).subspan(sample * static_cast<std::size_t>(sequence), static_cast<std::size_t>(sequence));
}

// The number of attention pairs on the busiest rank, divided by the mean over ranks. Pairs are summed over all samples.
double imbalance(const std::vector<TokenCut>& cuts, const Positions& positions) {
  std::vector<double> pairs(static_cast<std::size_t>(cuts.front().ranks()));
  for (std::size_t sample = 0; sample < cuts.size(); ++sample)
    for (std::size_t rank = 0; rank < pairs.size(); ++rank)
      for (const std::int64_t place : cuts[sample].places(static_cast<std::int64_t>(rank)))
        pairs[rank] += sample_of(positions, sample, cuts[sample].sequence())[static_cast<std::size_t>(place)] + 0.5;
  return *std::ranges::max_element(pairs) * static_cast<double>(pairs.size()) /
         std::accumulate(pairs.begin(), pairs.end(), 0.0);
}

bool same(const TokenCut& a, const TokenCut& b) {
  bool equal = a.ranks() == b.ranks();
  for (std::int64_t rank = 0; equal && rank < a.ranks(); ++rank) equal = a.places(rank) == b.places(rank);
  return equal;
}

TEST_CASE("a balanced cut gives each rank its usual number of tokens in every sample, and leaves a short last block") {
  for (const std::int64_t sequence : {7, 12, 41, 67, 97, 256, 1000, 4099})
    for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(6, Context::leaves_of(sequence).per_sample()); ++ranks) {
      INFO(sequence << " tokens, " << ranks << " ranks");
      const std::int64_t length = Context::leaves_of(sequence).length;
      const TokenCut usual(sequence, ranks, &token_cut_named("balanced"));
      CHECK(same(usual, TokenCut(sequence, ranks, nullptr)));
      const Positions positions = positions_of(5, sequence, std::max<std::int64_t>(sequence / 4, 2));
      const std::vector<TokenCut> cuts = balanced_cuts(usual, positions), again = balanced_cuts(usual, positions);
      REQUIRE(cuts.size() == 5);
      for (std::size_t sample = 0; sample < cuts.size(); ++sample) {
        const TokenCut& cut = cuts[sample];
        Numbers all;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const Numbers places = cut.places(rank);
          CHECK((cut.tokens(rank) == usual.tokens(rank) && std::ranges::is_sorted(places)));
          CHECK(cut.runs(rank) == again[sample].runs(rank));
          for (const TokenRun& run : cut.runs(rank)) {
            CHECK((run.first % length == 0 && places[static_cast<std::size_t>(run.row)] == run.first));
            CHECK((run.count % length == 0 || run.first + run.count == sequence));
          }
          const bool last_here = places.back() == sequence - 1;
          if (sequence % length > 0) CHECK(last_here == (usual.places(rank).back() == sequence - 1));
          all.insert(all.end(), places.begin(), places.end());
        }
        std::ranges::sort(all);
        CHECK((std::ssize(all) == sequence && all.front() == 0 && all.back() == sequence - 1));
        CHECK(std::ranges::adjacent_find(all) == all.end());
      }
    }
}

TEST_CASE("a sample of one document is cut as by zigzag, and others make up for it") {
  Positions positions = positions_of(2, 4096, 500);
  std::iota(positions.begin(), positions.begin() + 4096, 0);
  const std::vector<TokenCut> cuts = balanced_cuts(TokenCut(4096, 4, &token_cut_named("balanced")), positions);
  CHECK(same(cuts[0], TokenCut(4096, 4, &token_cut_named("zigzag"))));
  CHECK(!same(cuts[1], TokenCut(4096, 4, &token_cut_named("zigzag"))));
}

// The example of balanced_cut.hpp with eight blocks of one token.
TEST_CASE("the costliest block goes first, to the rank with the least work that has room") {
  const Positions positions{0, 1, 2, 3, 4, 0, 1, 0};
  const std::vector<TokenCut> cuts = balanced_cuts(TokenCut(8, 2, &token_cut_named("balanced")), positions);
  CHECK(cuts[0].places(0) == Numbers{1, 4, 6, 7});
  CHECK(cuts[0].places(1) == Numbers{0, 2, 3, 5});
  CHECK(imbalance(cuts, positions) == Approx(16.0 / 15));
  CHECK(imbalance({TokenCut(8, 2, &token_cut_named("zigzag"))}, positions) == Approx(22.0 / 15));
}

// Compares the busiest rank's number of attention pairs with the mean, over 50 micro-batches of random documents. A document
// has 1000 tokens on average. From a single sample of 2048 tokens, each rank gets only two blocks of 256 tokens, which are
// too few to balance.
TEST_CASE("random documents are uneven under zigzag, and nearly even under a balanced cut") {
  struct Row {
    std::int64_t sequence, samples, ranks;
    double zigzag_mean, mean, most;
  };
  for (const Row& row : {Row{8192, 1, 4, 1.484, 1.0046, 1.022},
                         {8192, 4, 4, 1.268, 1.0014, 1.007},
                         {8192, 1, 8, 1.697, 1.028, 1.083},
                         {2048, 4, 4, 1.204, 1.013, 1.036},
                         {2048, 1, 4, 1.401, 1.166, 1.478}}) {
    INFO(row.samples << " samples of " << row.sequence << " tokens, " << row.ranks << " ranks");
    double zigzag = 0, mean = 0, most = 0;
    for (std::int64_t batch = 0; batch < 50; ++batch) {
      const Positions positions = positions_of(row.samples, row.sequence, 1000, batch * row.samples);
      const TokenCut fixed(row.sequence, row.ranks, &token_cut_named("zigzag"));
      zigzag += imbalance(std::vector(static_cast<std::size_t>(row.samples), fixed), positions) / 50;
      const double one =
          imbalance(balanced_cuts(TokenCut(row.sequence, row.ranks, &token_cut_named("balanced")), positions), positions);
      mean += one / 50;
      most = std::max(most, one);
    }
    CHECK(zigzag > row.zigzag_mean);
    CHECK(mean < row.mean);
    CHECK(most < row.most);
  }
}

TEST_CASE("keys that no query of a rank sees are known, also those of other documents") {
  for (const std::int64_t sequence : {41, 256, 1000}) {
    const Positions positions = positions_of(4, sequence, sequence / 4);
    const std::vector<TokenCut> cuts = balanced_cuts(TokenCut(sequence, 4, &token_cut_named("balanced")), positions);
    int unseen = 0;
    for (std::size_t sample = 0; sample < cuts.size(); ++sample)
      for (std::int64_t rank = 0; rank < 4; ++rank)
        for (std::int64_t owner = 0; owner < 4; ++owner)
          for (const TokenRun& keys : cuts[sample].runs(owner)) {
            bool sees = false;
            for (const std::int64_t query : cuts[sample].places(rank)) {
              const auto position = sample_of(positions, sample, sequence)[static_cast<std::size_t>(query)];
              sees |= query >= keys.first && query - position < keys.first + keys.count;
            }
            CHECK(cuts[sample].sees(rank, keys) == sees);
            unseen += !sees && cuts[sample].places(rank).back() > keys.first;
          }
    CHECK(unseen > 0);
  }
}

TrainingOptions options_for(const char* numerics, const Layout& layout, std::int64_t sequence = 41) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.shape.sequence = sequence;
  options.batch.packed = true;
  options.context.cut = &token_cut_named("balanced");
  return options;
}

void is_one_rank(const std::function<TrainingOptions(const Layout&)>& options_of, std::initializer_list<const char*> words,
                 test::Sample& sample) {
  const test::Seen expected = test::train_alone(options_of({}));
  for (const char* word : words) {
    if (!sample.takes()) continue;
    const Layout layout = parse_layout(word, 0);
    const TrainingOptions options = options_of(layout);
    INFO(word << ", " << options.context.scheme->name);
    REQUIRE(test::fits(options, layout));
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
            return difference(expected, test::train(options, std::move(mesh), memory));
          }) == "");
  }
}

// A sequence of 41 tokens is divided into leaves (blocks of tokens) of 4 tokens each and a last leaf of 1 token. A sequence
// of 5 tokens has 5 leaves, which are too few for a zigzag partition among three ranks.
TEST_CASE("with gather and a balanced cut, packed samples have the bits of one rank", "[threads]") {
  test::Sample third(3), all(1);
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      INFO(name_of(family) << ", recompute " << static_cast<int>(recompute));
      is_one_rank(
          [&](const Layout& layout) {
            TrainingOptions options = options_for("exact", layout);
            options.shape.family = family;
            options.recompute = recompute;
            if (layout.stages() > 1) options.batch.micro = 3;
            return options;
          },
          {"dp1.cp2", "dp1.cp4", "dp1.tp2.cp2", "dp1.cp3.z3", "dp2.cp2.z2", "dp1.pp2.cp2", "dp1.pp2.cp2.zb-h1"}, third);
    }
  is_one_rank([](const Layout& layout) { return options_for("exact", layout, 5); }, {"dp1.cp2", "dp1.cp3", "dp1.cp5"}, all);
  is_one_rank(
      [](const Layout& layout) {
        TrainingOptions options = options_for("exact", layout);
        options.context.scheme = &context_scheme_named("ulysses");
        return options;
      },
      {"dp1.cp2", "dp1.cp3", "dp1.tp2.cp3"}, all);
}

// The same test as in context_test.cpp, but with packed samples.
TEST_CASE("with a balanced cut, experts have the bits of one rank, however tokens are routed", "[threads]") {
  test::Sample fifth(5);
  const std::pair<const char*, std::function<void(Experts&)>> ways[] = {
      {"balance by sequence", [](Experts&) {}},
      {"balance by steps", [](Experts& e) { e.balancing = BalanceOver::step; }},
      {"drops", [](Experts& e) { e.capacity = 0.75; }},
      {"zipf",
       [](Experts& e) {
         e.routing = ForcedRouting::zipf;
         e.balance = 0;
       }},
      {"zipf, balance by sequence", [](Experts& e) { e.routing = ForcedRouting::zipf; }},
      {"all to one, with drops", [](Experts& e) {
         e.routing = ForcedRouting::one;
         e.capacity = 0.5;
       }}};
  for (const auto& [name, change] : ways) {
    INFO(name);
    is_one_rank(
        [&change = change](const Layout& layout) {
          TrainingOptions options = options_for("exact", layout, 19);
          const ModelShape dense = options.shape;
          options.shape = test::small_moe();
          options.shape.sequence = dense.sequence;
          change(options.shape.experts);
          return options;
        },
        {"dp1.cp2", "dp1.cp3.z3", "dp1.cp2.ep2", "dp1.cp3.ep3", "dp1.tp2.cp2", "dp1.pp2.cp2.ep2"}, fifth);
  }
}

TEST_CASE("with ring and a balanced cut, packed samples have the results of one rank", "[threads]") {
  test::Sample fifth(5);
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama}) {
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = options_for("fast", layout);
      options.shape.family = family;
      options.compute = DType::f64;
      options.context.scheme = &context_scheme_named("ring");
      if (layout.stages() > 1) options.batch.micro = 3;
      return options;
    };
    const test::Seen expected = test::train_alone(options_of({}));
    for (const char* word : {"dp1.cp2", "dp1.cp3", "dp1.cp4", "dp1.tp2.cp2", "dp2.cp2.z2", "dp1.pp2.cp2"}) {
      if (!fifth.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      INFO(name_of(family) << ", " << word);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              const test::Seen seen = test::train(options_of(layout), std::move(mesh), memory);
              for (std::size_t step = 0; step < seen.steps.size(); ++step)
                for (const auto& [what, number, alone] :
                     {std::tuple{"loss", seen.steps[step].loss, expected.steps[step].loss},
                      {"norm", seen.steps[step].gradient_norm, expected.steps[step].gradient_norm},
                      {"held out", seen.held_out, expected.held_out}})
                  if (std::abs(number / alone - 1) > 1e-11)
                    return fmt::format("step {}: {} {}, alone {}", step + 1, what, number, alone);
              return "";
            }) == "");
    }
  }
}

TEST_CASE("a balanced cut is refused with ulysses-ring") {
  const Layout layout = parse_layout("dp1.cp4", 0);
  LayoutLimits limits{.shape = test::small_shape(), .world = 4, .global_batch = 4};
  limits.shape.sequence = 64;
  limits.context = {.scheme = &context_scheme_named("ulysses-ring"), .cut = &token_cut_named("balanced"), .inner = 2};
  const auto check_refused = [](const auto& call) {
    const std::string text = test::refused(call);
    CHECK_THAT(text, says("the groups of ulysses-ring need the same tokens of every sample"));
    CHECK_THAT(text, says("context 4 with --context-cut balanced, which cuts each sample by its documents"));
    CHECK_THAT(text, says("try --context-cut zigzag, or --context-scheme ring"));
  };
  check_refused([&] { require_fits(layout, limits); });
  limits.context.cut = &token_cut_named("zigzag");
  CHECK(fits(layout, limits));
  TrainingOptions options = options_for("fast", layout, 64);
  options.context = {.scheme = &context_scheme_named("ulysses-ring"), .cut = &token_cut_named("balanced"), .inner = 2};
  check_refused([&] { plan_rank({.options = options, .layout = layout}, 0); });
}

}  // namespace
}  // namespace chorale
