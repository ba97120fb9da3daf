// Tests context parallelism on two levels. Covers the groups of ranks, the bytes that cross hosts, and refused layouts.
// Results are compared with a one-rank run.
#include "parallel/context/context.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/placement.hpp"
#include "parallel/plan/order.hpp"
#include "parallel/plan/plan.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::int64_t>;

std::unique_ptr<Axis> axis_of(int rank, const std::vector<int>& hosts, CommunicationTime& time) {
  return pretended_axis("cp", rank, static_cast<int>(hosts.size()), hosts_among(hosts), {}, "threads", "", nullptr, time);
}

TEST_CASE("the ranks that exchange heads are those of a host, or as many adjacent ranks as were asked for") {
  CommunicationTime time;
  const auto parts_of = [&](const std::vector<int>& hosts, std::int64_t inner) {
    const std::unique_ptr<Axis> axis = axis_of(0, hosts, time);
    return inner_parts(*axis, inner).part_of();
  };
  CHECK(parts_of({0, 0, 0, 0}, 0) == Numbers{0, 0, 0, 0});
  CHECK(parts_of({0, 0, 0, 0}, 2) == Numbers{0, 0, 1, 1});
  CHECK(parts_of({0, 1, 1, 0}, 0) == Numbers{0, 1, 1, 0});
  CHECK(parts_of({0, 1, 1, 0}, 2) == Numbers{0, 1, 1, 0});
  CHECK(parts_of({0, 1, 1, 0}, 4) == Numbers{0, 0, 0, 0});
  CHECK(parts_of({0, 0, 0, 1}, 2) == Numbers{0, 0, 1, 1});
}

// Twelve key heads cannot be divided among eight ranks of one host, but can be divided among the four ranks of each of two
// hosts.
TEST_CASE("whether ranks can use ulysses-ring depends on their hosts, which may be known late") {
  ModelShape shape = test::options_for("fast", {}).shape;
  shape.heads = shape.groups = 12;
  const ContextOptions by_host{&context_scheme_named("ulysses-ring")},
      by_six{.scheme = &context_scheme_named("ulysses-ring"), .inner = 6};
  const Layout eight = parse_layout("dp1.cp8", 0), four = parse_layout("dp2.cp4", 0);
  CHECK(misfit_on_hosts(by_host, shape, eight, {}));
  CHECK(!misfit_on_hosts(by_host, shape, eight, {0, 0, 0, 0, 1, 1, 1, 1}));
  CHECK(!misfit_on_hosts(by_host, shape, four, {}));
  CHECK(!misfit_on_hosts(by_host, shape, four, {0, 0, 0, 0, 1, 1, 2, 2}));
  CHECK(misfit_on_hosts(by_six, shape, eight, {0, 0, 0, 0, 1, 1, 1, 1}));
  const MaybeMisfit uneven = misfit_on_hosts(by_host, shape, four, {0, 0, 0, 0, 1, 1, 1, 2});
  REQUIRE(uneven);
  CHECK_THAT(uneven->what, says("unequal numbers of context ranks"));
  CHECK(uneven->numbers == "the 4 ranks of a sequence are on hosts with 3, 1 of them");
  CHECK_THAT(uneven->remedy, says("--context-inner"));
  CHECK(!misfit_on_hosts({&context_scheme_named("ring")}, shape, four, {0, 0, 0, 0, 1, 1, 1, 2}));

  LayoutLimits limits{.shape = shape, .world = 8, .global_batch = 8, .context = by_host};
  CHECK_FALSE(fits(eight, limits));
  limits.one_host = false;
  CHECK(fits(eight, limits));
  CHECK(before_hosts_are_known(by_host, shape, eight).inner == 4);
  CHECK(before_hosts_are_known(by_six, shape, eight).inner == 6);
}

TEST_CASE("an order of the axes is chosen in which each host has as many context ranks as the others") {
  const Layout layout = parse_layout("dp2.cp2", 0);
  const TrainingOptions options = [&] {
    TrainingOptions o = test::options_for("fast", layout);
    o.context.scheme = &context_scheme_named("ulysses-ring");
    return o;
  }();
  const Topology dealt{{0, 0, 0, 1, 1, 1}, {"n0", "n1"}};
  const Layout three = parse_layout("dp2.cp3", 0);
  const WhyNot why_not = [&](const Layout& l) { return why_not_on(dealt, l, {{"", "mpi"}}, options); };
  CHECK(why_not(three).empty());
  Layout turned = three;
  turned.order = {"cp", "dp"};
  CHECK_THAT(why_not(turned), says("on hosts with 2, 1 of them"));
  const OrderChoice choice = cheapest_order(three, why_not, {{"dp", 1000}, {"cp", 1}}, dealt);
  CHECK(choice.order.empty());  // the order dp,cp sends more bytes across hosts than cp,dp, but cp,dp is impossible
}

// Ranks 0 and 3 are on one host. In the rings 0–1 and 3–2, the index of each rank is its host number.
TEST_CASE("parts across hosts have a rank of each host, in the order of the hosts") {
  CommunicationTime time;
  for (int rank = 0; rank < 4; ++rank) {
    const std::unique_ptr<Axis> axis = axis_of(rank, {0, 1, 1, 0}, time);
    const AxisParts hosts = inner_parts(*axis, 0), rings = hosts.across();
    CHECK((hosts.size() == 2 && rings.size() == 2 && rings.rank() == hosts.part() && rings.part() == hosts.rank()));
    CHECK(rings.part_of() == Numbers{0, 0, 1, 1});
    const RowsBetween rows = rings.between([](std::int64_t from, std::int64_t to) { return 10 * from + to; });
    CHECK(rows == RowsBetween{0, 1, 0, 0, 10, 11, 0, 0, 0, 0, 22, 23, 0, 0, 32, 33});
  }
}

TEST_CASE("a host has all tokens of its ranks, and under zigzag adjacent ranks have even work together") {
  for (const std::int64_t sequence : {41, 64, 1000})
    for (const CutRow& row : token_cuts())
      for (const Numbers& part_of : {Numbers{0, 0, 1, 1}, {0, 1, 1, 0}, {0, 1, 0, 1}}) {
        INFO(sequence << " tokens, " << row.name);
        const TokenCut cut(sequence, 4, &row), parts = cut.joined(part_of);
        CHECK((parts.ranks() == 2 && parts.tokens(0) + parts.tokens(1) == sequence));
        for (std::int64_t part = 0; part < 2; ++part) {
          const TokenCut within = cut.within(part_of, part);
          const Numbers theirs = parts.places(part);
          CHECK((within.ranks() == 2 && within.sequence() == std::ssize(theirs) && std::ranges::is_sorted(theirs)));
          std::int64_t index = 0;
          for (std::int64_t rank = 0; rank < 4; ++rank) {
            if (part_of[static_cast<std::size_t>(rank)] != part) continue;
            Numbers places = within.places(index++);
            for (std::int64_t& place : places) place = theirs[static_cast<std::size_t>(place)];
            CHECK(places == cut.places(rank));
          }
        }
      }
  const TokenCut zigzag = TokenCut(4096, 4, &token_cut_named("zigzag")).joined({0, 0, 1, 1});
  CHECK((zigzag.runs(0).size() == 2 && zigzag.runs(1).size() == 1));
  CHECK(zigzag.pairs(0) == Approx(zigzag.pairs(1)));
}

TrainingOptions options_for(const Layout& layout, ModelFamily family = ModelFamily::llama, bool packed = false) {
  TrainingOptions options = test::options_for("fast", layout);
  options.shape.family = family;
  options.shape.sequence = 53;  // leaves of 4 tokens and a last leaf of 1
  options.shape.heads = 12;
  options.shape.groups = 4;
  options.compute = DType::f64;
  options.batch.packed = packed;
  options.context.scheme = &context_scheme_named("ulysses-ring");
  return options;
}

TEST_CASE("with dropout, packed documents and unequal shares, ulysses-ring has the results of one rank", "[threads]") {
  struct Place {
    const char* word;
    std::int64_t inner;
    std::vector<int> hosts;
  };
  const Place places[] = {{"dp1.cp4", 2, {}},
                          {"dp1.cp4", 0, {0, 1, 1, 0}},
                          {"dp1.cp4", 1, {}},
                          {"dp1.cp6.z3", 2, {}},
                          {"dp1.tp2.cp4", 2, {}},
                          {"dp1.pp2.cp4", 0, {0, 0, 1, 1, 0, 0, 1, 1}},
                          {"dp2.cp4.z1", 2, {0, 1, 0, 1, 0, 1, 0, 1}}};
  test::Sample fifth(5);
  for (const auto& [family, packed] : {std::pair{ModelFamily::gpt2, false}, {ModelFamily::llama, true}}) {
    const test::Seen expected = test::train_alone(options_for({}, family, packed));
    for (const CutRow& cut : token_cuts())
      for (const auto& [word, inner, hosts] : places) {
        if (cut.by_work || !fifth.takes()) continue;  // the balanced partition is refused (balanced_cut_test.cpp)
        const Layout layout = parse_layout(word, 0);
        INFO(name_of(family) << ", " << word << ", inner " << inner << ", " << cut.name);
        TrainingOptions options = options_for(layout, family, packed);
        options.context.cut = &cut;
        options.context.inner = inner;
        const auto strays = [&](Mesh mesh, Memory& memory) -> std::string {
          const test::Seen seen = test::train(options, std::move(mesh), memory);
          for (std::size_t step = 0; step < seen.steps.size(); ++step)
            for (const auto& [what, number, alone] :
                 {std::tuple{"loss", seen.steps[step].loss, expected.steps[step].loss},
                  {"norm", seen.steps[step].gradient_norm, expected.steps[step].gradient_norm}})
              if (std::abs(number / alone - 1) > 1e-11)
                return fmt::format("step {}: {} {}, alone {}", step + 1, what, number, alone);
          return "";
        };
        CHECK(test::on_thread_mesh(layout, strays, hosts) == "");
      }
  }
}

// The number of elements that a rank sends to other hosts, per step, layer and sample. The rank's host has N of s tokens.
//
//   ulysses        sends its tokens for the heads of other hosts, and their tokens for its heads; the same backward
//   ulysses-ring   sends as much as a ring of hosts with the width h_kv/u; nothing else crosses hosts
TEST_CASE("across hosts, ulysses-ring sends only what its ring sends, and with 4 queries per key head less than ulysses") {
  const Layout layout = parse_layout("dp1.cp4", 0);
  for (const std::vector<int>& hosts : {std::vector{0, 0, 1, 1}, {0, 1, 1, 0}})
    for (const std::int64_t sequence : {64, 41}) {
      PlanRequest request{.options = options_for(layout), .layout = layout, .hosts = hosts};
      request.backends = {{"", "mpi"}};
      ModelShape& shape = request.options.shape;
      shape.sequence = sequence;
      shape.heads = 16;
      shape.groups = 4;
      shape.width = 64;
      request.options.context.cut = &token_cut_named("contiguous");
      const TokenCut cut(sequence, 4, &token_cut_named("contiguous")),
          by_host = cut.joined(Numbers(hosts.begin(), hosts.end()));
      const std::int64_t h = 64, h_kv = 16, u = 2, c = 4;
      std::int64_t crossing_ring = 0, crossing_ulysses = 0;
      for (int rank = 0; rank < 4; ++rank) {
        INFO(sequence << " tokens, rank " << rank);
        const auto crossing = [&](const char* scheme) {
          request.options.context.scheme = &context_scheme_named(scheme);
          const Account account = plan_rank(request, rank).axes.at("cp");
          return account.entries[static_cast<std::size_t>(Collective::all_to_all)].crossing /
                 (request.options.batch.global * shape.layers * 8);  // f64
        };
        const int host = hosts[static_cast<std::size_t>(rank)];
        const std::int64_t other = by_host.tokens(1 - host);
        CHECK(crossing("ulysses-ring") == 2 * h_kv / u * (2 * by_host.tokens(host) + other));
        CHECK(crossing("ulysses") == (2 * h + 2 * h_kv) / c * (cut.tokens(rank) * (c - u) + other));
        crossing_ring += crossing("ulysses-ring");
        crossing_ulysses += crossing("ulysses");
      }
      CHECK(crossing_ring < crossing_ulysses);
      if (sequence == 64) CHECK(crossing_ulysses == crossing_ring * 10 / 6);  // (2h + 2h_kv) / 3h_kv r
    }
}

TEST_CASE("numbers of ranks that do not fit ulysses-ring are refused, with numbers that do") {
  LayoutLimits limits{.shape = options_for({}).shape, .world = 12, .global_batch = 12};
  limits.context.scheme = &context_scheme_named("ulysses-ring");
  const auto refused = [&](const char* word, std::int64_t inner) {
    limits.context.inner = inner;
    limits.world = parse_layout(word, 0).ranks();
    return test::refused([&] { require_fits(parse_layout(word, 0), limits); });
  };
  CHECK_THAT(refused("dp1.cp6", 4), says("do not form groups of this size") &&
                                        says("context 6 is not a multiple of context-inner 4") &&
                                        says("try --context-inner 1 or 2"));
  CHECK_THAT(refused("dp1.cp6", 3), says("do not divide the key-value heads") &&
                                        says("num-query-groups 4 / tensor 1 = 4 is not a multiple of context-inner 3") &&
                                        says("try --context-inner 1 or 2"));
  CHECK_THAT(refused("dp1.cp6", 0), says("can neither divide nor share") && says("try --context-inner 1 or 2"));
  CHECK_THAT(refused("dp1.tp2.cp4", 3), says("try --context-inner 1 or 2, or "));
  limits.context.inner = 2;
  CHECK(fits(parse_layout("dp1.cp6", 6), (limits.world = 6, limits)));

  // Six ranks of one host could share two key heads. These ranks are on two hosts, however, and hosts are known only after
  // the ranks have started.
  const Layout layout = parse_layout("dp1.cp6", 0);
  TrainingOptions options = options_for(layout);
  options.shape.heads = 6;
  options.shape.groups = 2;
  CHECK_THAT(test::refused([&] {
               plan_rank({.options = options, .layout = layout, .hosts = {0, 0, 0, 1, 1, 1}}, 0);
             }),
             says("num-query-groups 2 / tensor 1 = 2 is not a multiple of context-inner 3") &&
                 says("try --context-inner 1, 2 or 6"));
}

}  // namespace
}  // namespace chorale
