// Compares plans with measured calls and sent bytes along each axis, and with measured memory use in each category. All
// values are integers, and planned and measured values must be equal. The only exception is the memory of pipeline messages
// in flight (`comm`). A run can need less memory for messages than planned, because the plan counts each message for as long
// as the schedule allows.
#include <set>

#include <chorale/algorithm.hpp>
#include "src/math/forced_routing.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/parallel/plan/plan_requests.hpp"

namespace chorale {
namespace {

using test::request_for;

void read_nothing(std::int64_t, std::int64_t, const SampleRows& rows) {
  std::ranges::fill(rows.inputs, 1);
  std::ranges::fill(rows.targets, 2);
}

// Runs a step and compares it with its plan. `with_memory` is false where the number of rows depends on the routing, because
// memory is then not planned exactly.
void planned_is_measured(const PlanRequest& request, bool with_memory = true, const ReadSamples& read = read_nothing) {
  INFO(to_string(request.layout) << " by " << request.algorithms.at(""));
  const int ranks = static_cast<int>(request.layout.ranks());
  ThreadWorld world(ranks);
  CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
          SystemClock clock;
          Communicator placed = open_world(world.transport(me.rank()), clock);
          placed.pretend_hosts(request.hosts);
          const Worlds worlds(std::move(placed));
          Training training(request.options, Mesh(request.layout, worlds, request.algorithms), worlds.memory(), clock);
          clear_accounts(training.mesh());
          training.step(read);
          training.check_activations();
          const bool knows = knows_routing(request.options, request.layout);
          const RankPlan plan = plan_rank(request, me.rank()), seen = observed(training);
          const std::string trouble =
              with_memory ? test::difference_of_steps(plan, seen, knows) : difference(plan.axes, seen.axes, knows);
          me.check(trouble.empty(), "{}", trouble);
        }) == "");
}

std::vector<Layout> layouts_of(int world) { return all_layouts({request_for({}, "ring").options.shape, world, 12, 1}); }

TEST_CASE("measured calls and bytes equal the plan", "[threads]") {
  test::Sample third(3);
  for (const Layout& layout : test::covering({2, 4, 6, 8}, layouts_of))
    for (const char* algorithm : {"ring", "auto"})
      if (third.takes()) planned_is_measured(request_for(layout, algorithm));
}

TEST_CASE("measured calls and bytes equal the plan if ranks sum gradients in bf16", "[threads]") {
  test::Sample third(3);
  for (const Layout& layout : test::covering({1, 2, 4}, layouts_of))
    for (const char* algorithm : {"ring", "auto"}) {
      if (!third.takes()) continue;
      PlanRequest request = request_for(layout, algorithm);
      request.options.replicas.gradient_sums = DType::bf16;
      if (layout.stages() == 1) request.options.batch.micro = std::max<std::int64_t>(request.options.batch.micro / 3, 1);
      planned_is_measured(request);
    }
}

// A sequence of 41 tokens is divided into leaves (blocks of tokens) of 4 tokens each and a last leaf of 1 token. So ranks
// have unequal numbers of tokens.
TEST_CASE("measured calls and bytes of every scheme and cut of context parallelism equal the plan", "[threads]") {
  for (const ContextScheme& scheme : context_schemes())
    for (const CutRow& cut : token_cuts())
      for (const auto& [word, groups] : {std::pair{"dp1.cp2", 6},
                                         {"dp1.cp3", 6},
                                         {"dp1.tp2.cp2", 6},
                                         {"dp2.cp2.z3", 6},
                                         {"dp1.pp2.cp2", 6},
                                         {"dp1.cp2", 1},
                                         {"dp1.cp6", 3}}) {
        INFO(scheme.name << ", " << cut.name << ", " << groups << " groups");
        PlanRequest request = request_for(parse_layout(word, 0), "ring");
        request.options.shape.groups = groups;
        request.options.shape.sequence = 41;
        request.options.context = {&scheme, &cut};
        const LayoutLimits limits{
            request.options.shape, request.layout.ranks(), request.options.batch.global, request.options.batch.micro,
            &all_axes(),           request.options.context};
        if (fits(request.layout, limits)) planned_is_measured(request);
      }
}

// Each sample is divided among ranks according to its documents. With 5 tokens, each of three ranks has the same number of
// tokens as in a contiguous partition.
TEST_CASE("measured calls and bytes of a balanced cut of packed documents equal the plan", "[threads]") {
  for (const ContextScheme& scheme : context_schemes())
    for (const auto& [word, sequence] : {std::pair{"dp1.cp2", 41},
                                         {"dp1.cp3", 41},
                                         {"dp1.cp3", 5},
                                         {"dp2.cp2.z3", 41},
                                         {"dp1.tp2.cp2", 41},
                                         {"dp1.pp2.cp2", 41},
                                         {"dp1.cp4", 67}}) {
      INFO(scheme.name << ", " << sequence << " tokens");
      PlanRequest request = request_for(parse_layout(word, 0), "ring");
      request.options.shape.sequence = sequence;
      request.options.shape.groups = 2;
      request.options.batch.packed = true;
      request.options.context = {&scheme, &token_cut_named("balanced")};
      const LayoutLimits limits{
          request.options.shape, request.layout.ranks(), request.options.batch.global, request.options.batch.micro,
          &all_axes(),           request.options.context};
      for (const std::int64_t micro_batch : {request.options.batch.micro, std::int64_t{1}}) {
        request.options.batch.micro = micro_batch;
        if (fits(request.layout, limits)) planned_is_measured(request, true, test::samples_of(request.options.shape, true));
      }
    }
}

// The documents determine which rank has a token. So even with a forced routing, plans do not know from which ranks an
// expert receives rows.
TEST_CASE("under a balanced cut, experts send the planned bytes, apart from rows whose owner no plan knows", "[threads]") {
  for (const char* word : {"dp1.cp2", "dp1.cp3.z2", "dp1.cp2.ep2", "dp1.cp3.ep3", "dp1.tp2.cp2.ep2"})
    for (const std::optional<ForcedRouting> routing : {std::optional<ForcedRouting>(), {ForcedRouting::zipf}})
      for (const double capacity : {0.0, 0.7}) {
        INFO((routing ? name_of(*routing) : learned_routing) << ", capacity " << capacity);
        PlanRequest request = request_for(parse_layout(word, 0), "ring");
        request.options.shape.sequence = 19;
        request.options.batch.packed = true;
        request.options.shape.experts = {
            .count = 6, .chosen = 2, .ffn = 24, .every = 2, .capacity = capacity, .balance = 0.01, .routing = routing};
        request.options.context.cut = &token_cut_named("balanced");
        const bool has_all = request.layout.expert_ranks() == 1 && capacity == 0;
        planned_is_measured(request, has_all, test::samples_of(request.options.shape, true));
      }
}

TEST_CASE("measured calls and bytes of context parallelism on two levels equal the plan", "[threads]") {
  test::Sample third(3);
  for (const std::int64_t sequence : {64, 41})
    for (const CutRow& cut : token_cuts())
      for (const auto& [word, inner, hosts] : {std::tuple{"dp1.cp4", 2, std::vector<int>{}},
                                               {"dp1.cp4", 0, {0, 0, 1, 1}},
                                               {"dp1.cp4", 0, {0, 1, 1, 0}},
                                               {"dp1.tp2.cp4", 2, {0, 0, 0, 0, 1, 1, 1, 1}},
                                               {"dp1.pp2.cp4.zb-h1", 2, {}},
                                               {"dp2.cp2.z3", 0, {0, 1, 0, 1}}}) {
        if (cut.by_work) continue;  // the balanced partition is refused (balanced_cut_test.cpp)
        INFO(sequence << " tokens, " << cut.name << ", inner " << inner);
        PlanRequest request = request_for(parse_layout(word, 0), "ring");
        request.options.shape.heads = 12;
        request.options.shape.groups = 4;
        request.options.shape.sequence = sequence;
        request.options.context = {&context_scheme_named("ulysses-ring"), &cut, inner};
        request.hosts = hosts;
        for (const bool packed : {false, true}) {
          request.options.batch.packed = packed;
          if (third.takes()) planned_is_measured(request);
        }
      }
}

// The function read_nothing() makes all tokens equal, so some experts get many rows and other experts few. Plans assume
// balanced routing.
TEST_CASE("without a capacity, measured calls and bytes of experts equal the plan, whatever the routing", "[threads]") {
  for (const Layout& layout : test::covering({1, 2, 4}, layouts_of)) {
    PlanRequest request = request_for(layout, "ring");
    request.options.shape.experts = {.count = 6, .chosen = 2, .ffn = 24, .shared_ffn = 12, .every = 2};
    planned_is_measured(request);
  }
}

TEST_CASE("with a forced routing, measured calls and bytes of divided experts equal the plan", "[threads]") {
  for (const char* word : {"dp2.ep2", "dp4.ep2", "dp4.ep4", "dp2.tp2.ep2.sp", "dp2.pp2.ep2", "dp2.pp2.ep2.zb-h1",
                           "dp4.ep2.z1", "dp4.ep2.z2", "dp2.tp2.ep2.z3"})
    for (const auto routing : {ForcedRouting::balanced, ForcedRouting::uniform, ForcedRouting::zipf, ForcedRouting::one})
      for (const double capacity : {0.0, 0.7}) {
        INFO(name_of(routing) << ", capacity " << capacity);
        PlanRequest request = request_for(parse_layout(word, 0), "ring");
        request.options.shape.experts = {
            .count = 8, .chosen = 3, .ffn = 24, .shared_ffn = 12, .every = 2, .capacity = capacity, .routing = routing};
        planned_is_measured(request);
      }
}

// A sequence of 19 tokens is divided into leaves (blocks of tokens) of 2 tokens each and a last leaf of 1 token. So three
// ranks have unequal numbers of tokens and leaves.
TEST_CASE("with a forced routing, ranks that divide sequences and experts send and keep what is planned", "[threads]") {
  for (const char* word :
       {"dp1.cp2.ep2", "dp1.cp3.ep3", "dp2.cp2.ep4.z1", "dp2.cp3.ep2", "dp1.tp2.cp2.ep2", "dp1.pp2.cp2.ep2"})
    for (const auto routing : {ForcedRouting::balanced, ForcedRouting::uniform, ForcedRouting::zipf, ForcedRouting::one})
      for (const bool by_host : {false, true}) {
        INFO(name_of(routing) << (by_host ? ", by host" : ""));
        PlanRequest request = request_for(parse_layout(word, 0), "ring");
        request.options.shape.sequence = 19;
        request.options.shape.experts = {
            .count = 12, .chosen = 3, .ffn = 24, .shared_ffn = 12, .every = 2, .balance = 0.01, .routing = routing};
        if (by_host)
          for (int rank = 0; rank < request.layout.ranks(); ++rank) request.hosts.push_back(rank % 2);
        request.options.exchange.dispatch = by_host ? Dispatch::by_host : Dispatch::plain;
        planned_is_measured(request);
      }
}

TEST_CASE("ranks that divide sequences and drop tokens send what is planned, and keep at most what is declared",
          "[threads]") {
  for (const char* word : {"dp1.cp2", "dp1.cp2.ep2", "dp1.cp3.ep3.z2", "dp1.tp2.cp2.ep2"}) {
    PlanRequest request = request_for(parse_layout(word, 0), "ring");
    request.options.shape.sequence = 19;
    request.options.shape.experts = {
        .count = 6, .chosen = 2, .ffn = 24, .shared_ffn = 12, .every = 2, .capacity = 0.7, .balance = 0.01};
    INFO(word);
    planned_is_measured(request, false);
  }
}

TEST_CASE("measured calls and bytes equal the plan on several hosts", "[threads]") {
  test::Sample fifth(5);
  for (const std::vector<int>& hosts : {std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 1}, std::vector{0, 1, 1, 2}})
    for (const Layout& layout : test::covering({4}, layouts_of))
      for (const char* algorithm : {"hierarchical", "auto"}) {
        if (!fifth.takes()) continue;
        PlanRequest request = request_for(layout, algorithm);
        request.hosts = hosts;
        planned_is_measured(request);
      }
}

TEST_CASE("measured calls and bytes of secondary shards equal the plan, on one host and on two", "[threads]") {
  for (const char* word : {"dp2.rep2.z3.hpz", "dp1.rep4.z3.hpz", "dp1.rep2.tp2.z3.hpz", "dp1.rep2.cp2.z3.hpz",
                           "dp2.rep2.pp2.z3.hpz", "dp2.rep3.z3.hpz"})
    for (const char* algorithm : {"ring", "auto"})
      for (const bool one_host : {true, false}) {
        PlanRequest request = request_for(parse_layout(word, 0), algorithm);
        if (request.layout.stages() == 1) request.options.batch.micro = 1;
        const std::int64_t ranks = request.layout.ranks();
        for (int rank = 0; rank < ranks && !one_host; ++rank) request.hosts.push_back(2 * rank >= ranks);
        planned_is_measured(request);
      }
}

// Whether every collective in training can use this algorithm with this layout.
bool fits_all_axes(const char* name, const Layout& layout) {
  for (const Collective what : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    for (const std::int64_t size : {layout.replicas(), layout.shards(), layout.ranks()})
      if (const Algorithm* row = find_algorithm(what, name); row && size > 1)
        if (!fits(*row, Problem::even(what, 96 * size, static_cast<int>(size)))) return false;
  return true;
}

TEST_CASE("measured calls and bytes equal the plan with every algorithm", "[threads]") {
  std::set<std::string> names, ran;
  for (const Algorithm& row : all_algorithms())
    if (row.what == Collective::all_reduce || row.what == Collective::reduce_scatter || row.what == Collective::all_gather)
      names.insert(row.name);
  const std::vector<Layout> layouts{parse_layout("dp3", 0), parse_layout("dp4", 0), parse_layout("dp3.z1", 0),
                                    parse_layout("dp4.z3", 0), parse_layout("dp2.tp2.z2.sp", 0)};
  for (const std::string& name : names)
    for (const Layout& layout : layouts)
      if (fits_all_axes(name.c_str(), layout)) {
        ran.insert(name);
        planned_is_measured(request_for(layout, name.c_str()));
      }
  CHECK(ran == names);
}

// In an f16 run whose first scale is too high, some steps are skipped.
TEST_CASE("a run with skipped steps and evaluations sends the planned bytes", "[threads]") {
  for (const Layout& layout : test::covering({4}, layouts_of)) {
    INFO(to_string(layout));
    PlanRequest request = request_for(layout, "auto", DType::f16);
    request.options.scaler = {.dynamic = true, .scale = 0x1p17, .hysteresis = 1, .patience = 1};
    ThreadWorld world(4);
    CHECK(test::on_threads(4, [&](test::ThreadRank& me) {
            SystemClock clock;
            const Worlds worlds(open_world(world.transport(me.rank()), clock));
            Training training(request.options, Mesh(layout, worlds, request.algorithms), worlds.memory(), clock);
            clear_accounts(training.mesh());
            RunCounts counts{.evaluations = 2};
            while (counts.steps - counts.skipped < 2 && counts.steps < 30) counts.count(training.step(read_nothing));
            for (int i = 0; i < 2; ++i) training.evaluate(read_nothing, 5);
            const RunPlan plan = plan_run(request, me.rank(), 5);
            me.check(counts.skipped > 0 && counts.steps == counts.skipped + 2, "{} of {} steps were skipped", counts.skipped,
                     counts.steps);
            const std::string trouble = difference(plan.after(counts), accounts_of(training.mesh()), false);
            me.check(trouble.empty(), "{}", trouble);
          }) == "");
  }
}

}  // namespace
}  // namespace chorale
