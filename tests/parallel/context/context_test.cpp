// Tests how context-parallel ranks divide a sequence, and how many bytes the schemes send.
#include "parallel/context/context.hpp"

#include <algorithm>
#include <functional>

#include "layers/context.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/step/assemble.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"

namespace chorale {
namespace {

TEST_CASE("a cut gives every token to one rank, in whole blocks, and each rank at least one") {
  for (const CutRow& row : token_cuts())
    for (const std::int64_t sequence : {1, 7, 12, 67, 97, 256, 1000, 4099}) {
      const std::int64_t length = Context::leaves_of(sequence).length, blocks = Context::leaves_of(sequence).per_sample();
      for (std::int64_t ranks = 1; ranks * row.blocks_per_rank <= blocks && ranks <= 9; ++ranks) {
        INFO(row.name << ", " << sequence << " tokens, " << ranks << " ranks");
        const TokenCut cut(sequence, ranks, &row);
        std::vector<int> owners(static_cast<std::size_t>(sequence));
        double pairs = 0;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          CHECK(cut.tokens(rank) > 0);
          const std::vector<std::int64_t> places = cut.places(rank);
          CHECK((std::ssize(places) == cut.tokens(rank) && std::ranges::is_sorted(places)));
          for (const std::int64_t place : places) ++owners[static_cast<std::size_t>(place)];
          for (const TokenRun& run : cut.runs(rank)) {
            CHECK(run.first % length == 0);
            CHECK((run.count % length == 0 || run.first + run.count == sequence));
            CHECK(places[static_cast<std::size_t>(run.row)] == run.first);
          }
          pairs += cut.pairs(rank);
        }
        CHECK(std::ranges::all_of(owners, [](int count) { return count == 1; }));
        CHECK(pairs == Approx(static_cast<double>(sequence * sequence) / 2));
      }
    }
}

// The load of the busiest rank divided by the mean over ranks.
double imbalance(const TokenCut& cut) {
  double most = 0;
  for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) most = std::max(most, cut.pairs(rank));
  return most * static_cast<double>(cut.ranks()) / (static_cast<double>(cut.sequence() * cut.sequence()) / 2);
}

TEST_CASE("the last of c contiguous ranks has 2 - 1/c times the mean work, and zigzag is even") {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    const double c = static_cast<double>(ranks);
    CHECK(imbalance(TokenCut(4096, ranks, &token_cut_named("contiguous"))) == Approx(2 - 1 / c));
    CHECK(imbalance(TokenCut(4096, ranks, &token_cut_named("zigzag"))) == Approx(1));
    CHECK(imbalance(TokenCut(4096, ranks, &token_cut_named("striped"))) <= 1 + (c - 1) / 16);  // 16 blocks
  }
}

// The number of elements that a rank sends in a step, per layer and sample. Rank r has n(r) of s tokens. On a tensor rank, h
// is the width of all query heads, and h_kv is the width of all key heads. With even shares, these formulas equal the
// formulas of docs/parallel.md.
//
//   gather    sends keys and values in both passes, and gradients of keys and values once, all by ring algorithms
//   ring      as many as gather: in a round, a rank passes on all shares except its successor's; gradients: all but its own
//   ulysses   sends its tokens for other ranks' heads, then other ranks' tokens for its heads; the same backward.
//             If ranks share key heads, each gets copies of width h_kv / groups, and gradients of keys are reduce-scattered
//
// ulysses-ring works like ulysses among `inner` adjacent ranks. Each of these ranks then works like ring, with a part of the
// heads. If `inner` is the number of all ranks, ulysses-ring equals ulysses.
std::int64_t elements_sent(std::string scheme, std::int64_t inner, const TokenCut& cut, std::int64_t rank, std::int64_t h,
                           std::int64_t h_kv, std::int64_t groups) {
  if (scheme == "ulysses-ring" && inner > 0 && inner < cut.ranks()) {
    std::vector<std::int64_t> part_of;
    for (std::int64_t other = 0; other < cut.ranks(); ++other) part_of.push_back(other / inner);
    return elements_sent("ulysses", 0, cut.within(part_of, rank / inner), rank % inner, h, h_kv, groups) +
           elements_sent("ring", 0, cut.joined(part_of), rank / inner, h / inner, h_kv / inner, groups / inner);
  }
  if (scheme == "ulysses-ring") scheme = "ulysses";
  const std::int64_t s = cut.sequence(), c = cut.ranks(), own = cut.tokens(rank), next = cut.tokens((rank + 1) % c);
  if (scheme == "ulysses" && c > groups)
    return own * (c - 1) * (2 * h / c + 2 * h_kv / groups) + (s - own) * (2 * h / c + 2 * h_kv);
  if (scheme == "ulysses") return (2 * h + 2 * h_kv) / c * (own * (c - 1) + s - own);
  return 2 * h_kv * (2 * (s - next) + s - own);
}

// Returns the name and the inner size of each scheme. Schemes with two levels are listed again with two ranks per part.
std::vector<std::pair<std::string, std::int64_t>> named_and_inner() {
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (const ContextScheme& scheme : context_schemes()) {
    all.emplace_back(scheme.name, 0);
    if (scheme.has_levels) all.emplace_back(scheme.name, 2);
  }
  return all;
}

TEST_CASE("the elements that each scheme sends equal the closed forms, also with unequal shares") {
  for (const auto& [name, inner] : named_and_inner())
    for (const auto& [sequence, groups] : {std::pair{64, 8}, {41, 8}, {41, 2}})
      for (const char* word : {"dp1.cp2", "dp1.cp4", "dp1.tp2.cp2", "dp1.tp2.cp4", "dp2.cp2"}) {
        INFO(name << ", inner " << inner << ", " << sequence << " tokens, " << groups << " groups, " << word);
        const Layout layout = parse_layout(word, 0);
        PlanRequest request{.options = test::options_for("fast", layout),
                            .layout = layout,
                            .backends = {{"", "mpi"}},
                            .algorithms = {{"", "ring"}}};
        ModelShape& shape = request.options.shape;
        shape.sequence = sequence;
        shape.heads = 16;
        shape.groups = groups;
        shape.width = 64;
        request.options.context.scheme = &context_scheme_named(name);
        request.options.context.inner = inner;
        if (inner > groups / layout.shards()) continue;
        const TokenCut cut(sequence, layout.context_ranks(), request.options.context.cut);
        const std::int64_t samples = request.options.batch.global / layout.replicas();
        for (int rank = 0; rank < static_cast<int>(layout.ranks()); ++rank) {
          const RankPlan plan = plan_rank(request, rank);
          const auto bytes = [&](Collective what) {
            return plan.axes.at("cp").entries[static_cast<std::size_t>(what)].bytes;
          };
          const std::int64_t sent =
              bytes(Collective::all_gather) + bytes(Collective::reduce_scatter) + bytes(Collective::all_to_all);
          const std::int64_t place = coordinates_of(layout, rank)[all_axes().row_of("cp")];
          CHECK(sent == elements_sent(name, inner, cut, place, shape.heads * shape.head_width() / layout.shards(),
                                      shape.groups * shape.head_width() / layout.shards(), shape.groups / layout.shards()) *
                            samples * shape.layers * static_cast<std::int64_t>(size_of(request.options.compute)));
        }
      }
}

// A sequence of 41 tokens is divided into leaves (blocks of tokens) of 4 tokens each and a last leaf of 1 token.
TEST_CASE("the schemes that say so have the bits of one rank, with any cut of a sequence of prime length", "[threads]") {
  const auto options_of = [](const Layout& layout) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape.sequence = 41;
    return options;
  };
  const test::Seen expected = test::train_alone(options_of({}));
  int ran = 0;
  test::Sample third(3);
  for (const ContextScheme& scheme : context_schemes())
    for (const CutRow& cut : token_cuts())
      for (const char* word : {"dp1.cp2", "dp1.cp3", "dp1.cp5.z3", "dp2.cp2.z1", "dp1.tp2.cp2", "dp1.pp2.cp2", "dp1.cp4"}) {
        const Layout layout = parse_layout(word, 0);
        INFO(word << ", " << scheme.name << ", " << cut.name);
        TrainingOptions options = options_of(layout);
        options.context = {&scheme, &cut};
        if (!scheme.exact || !test::fits(options, layout)) continue;
        ++ran;
        if (!third.takes()) continue;
        CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
                return difference(expected, test::train(options, std::move(mesh), memory));
              }) == "");
      }
  CHECK(ran > 25);
}

TEST_CASE("under ulysses, ranks that share key heads have the bits of one rank", "[threads]") {
  const auto options_of = [](const Layout& layout, std::int64_t groups) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape.family = ModelFamily::llama;
    options.shape.groups = groups;
    options.shape.sequence = 53;
    options.batch.packed = true;
    options.context.scheme = &context_scheme_named("ulysses");
    return options;
  };
  for (const auto& [groups, word] : {std::pair{1, "dp1.cp2"},
                                     {1, "dp1.cp3.z2"},
                                     {1, "dp2.cp2"},
                                     {1, "dp1.pp2.cp3"},
                                     {3, "dp1.cp6"},
                                     {2, "dp1.tp2.cp3"}}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word << ", " << groups << " groups");
    const test::Seen expected = test::train_alone(options_of({}, groups));
    REQUIRE(test::fits(options_of(layout, groups), layout));
    CHECK(test::on_thread_mesh(layout, [&, groups = groups](Mesh mesh, Memory& memory) {
            return difference(expected, test::train(options_of(layout, groups), std::move(mesh), memory));
          }) == "");
  }
}

// A sequence of 19 tokens is divided into leaves (blocks of tokens) of 2 tokens each and a last leaf of 1 token. So three
// ranks have unequal numbers of leaves.
TEST_CASE("ranks that divide both sequences and experts have the bits of one rank, however tokens are routed", "[threads]") {
  const std::pair<const char*, std::function<void(Experts&)>> ways[] = {
      {"balance by sequence", [](Experts&) {}},
      {"balance by steps", [](Experts& e) { e.balancing = BalanceOver::step; }},
      {"drops", [](Experts& e) { e.capacity = 0.75; }},
      {"drops alone",
       [](Experts& e) {
         e.capacity = 0.75;
         e.balance = 0;
       }},
      {"zipf", [](Experts& e) { e.routing = ForcedRouting::zipf; }},
      {"all to one, with drops", [](Experts& e) {
         e.routing = ForcedRouting::one;
         e.capacity = 0.5;
       }}};
  test::Sample fifth(5);
  for (const auto& [name, change] : ways) {
    const auto options_of = [&change = change](const Layout& layout) {
      TrainingOptions options = test::options_for("exact", layout);
      options.shape = test::small_moe();
      options.shape.sequence = 19;
      change(options.shape.experts);
      return options;
    };
    const test::Seen expected = test::train_alone(options_of({}));
    for (const char* word :
         {"dp1.cp2.ep2", "dp1.cp3.ep3", "dp2.cp3.ep6.z1", "dp1.tp2.cp2", "dp1.pp2.cp2.ep2", "dp1.cp3.z3"}) {
      if (!fifth.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      INFO(name << ", " << word);
      REQUIRE(test::fits(options_of(layout), layout));
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return difference(expected, test::train(options_of(layout), std::move(mesh), memory));
            }) == "");
    }
  }
}

TEST_CASE("too few blocks, a scheme without the bits of one rank and axes between dp and cp are refused") {
  LayoutLimits limits{.shape = test::options_for("exact", {}).shape, .world = 4, .global_batch = 8};
  limits.context.cut = &token_cut_named("zigzag");
  limits.shape.sequence = 5;
  CHECK_THAT(test::refused([&] { require_fits(parse_layout("dp1.cp4", 4), limits); }),
             says("too few blocks") && says("seq-length 5 is 5 blocks of 1; context 4 needs 8 with --context-cut zigzag") &&
                 says("try"));
  TrainingOptions options = test::options_for("exact", parse_layout("dp1.cp2", 2));
  options.context.scheme = &context_scheme_named("ring");
  CHECK_THAT(test::refused([&] { check(options, parse_layout("dp1.cp2", 2)); }), says("exact numerics"));
  limits.context.cut = &token_cut_named("contiguous");
  limits.context.scheme = &context_scheme_named("ulysses");
  limits.shape.sequence = 64;
  limits.world = 5;
  CHECK_THAT(
      test::refused([&] { require_fits(parse_layout("dp1.cp5", 5), limits); }),
      says("can neither divide nor share the key-value heads") && says("6 / tensor 1 = 6 is no multiple of context 5"));
  limits.context.scheme = &context_scheme_named("gather");
  limits.shape.sequence = 5;
  limits.world = 4;
  CHECK(fits(parse_layout("dp1.cp4", 4), limits));
  limits.shape.sequence = 64;
  limits.shape.experts = {.count = 4, .chosen = 2, .ffn = 16};
  CHECK(fits(parse_layout("dp1.cp4.ep2", 4), limits));
  limits.world = 8;
  CHECK(fits(parse_layout("dp2.cp2.tp2.ep2.tp-dp", 8), limits));
  CHECK(fits(parse_layout("dp2.cp2.tp2.ep2.cp-dp", 8), limits));
  CHECK(fits(parse_layout("dp1.cp4.tp2.ep2.tp-cp", 8), limits));
  CHECK_THAT(test::refused([&] { require_fits(parse_layout("dp2.cp2.tp2.ep2.dp-tp-cp", 8), limits); }),
             says("no other axis may be between dp and cp"));
}

}  // namespace
}  // namespace chorale
