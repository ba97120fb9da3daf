// Tests dispatch by host. Experts must get the same rows as from a plain dispatch. A token must be sent only once to each
// other host. Training must be bit-identical to a one-rank run.
#include "parallel/experts/experts.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "parallel/plan/plan.hpp"
#include "src/base/random.hpp"
#include "src/math/forced_routing.hpp"
#include "src/math/routing.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

using Hosts = std::vector<int>;  // the host of each rank

// Runs `body(mesh, memory)` on every rank of a layout, like test::on_thread_mesh, but the ranks appear to be on the given
// hosts.
template <class Body>
std::string on_hosts(const Layout& layout, const Hosts& hosts, Body body) {
  const int ranks = static_cast<int>(layout.ranks());
  ThreadWorld world(ranks);
  return test::on_threads(ranks, [&](test::ThreadRank& me) {
    SystemClock clock;
    Communicator all = open_world(world.transport(me.rank()), clock);
    all.pretend_hosts(hosts);
    const Worlds worlds(std::move(all));
    const std::string trouble = body(Mesh(layout, worlds, {}), worlds.memory());
    me.check(trouble.empty(), "{}", trouble);
  });
}

constexpr std::int64_t experts = 12, chosen = 3, row_width = 5;

// Ranks have different numbers of tokens, and the second rank has none. With a capacity, some choices are dropped.
Routing random_routing(std::int64_t rank, double capacity, Context& context) {
  const std::int64_t tokens = rank == 1 ? 0 : 24 + 8 * rank;
  const Tensor logits = context.typed({tokens, experts}, DType::f32);
  Random{.seed = static_cast<std::uint64_t>(rank)}.fill_uniform(0, logits.values<float>());
  const RoutingRule rule{.experts = experts, .chosen = chosen, .capacity = capacity, .sequence = 8};
  return route(logits, rule, 8, context.memory, context.queue);
}

// The number of times that tokens of this rank are sent to a different host.
std::int64_t crossings(const Routing& routing, const Axis& axis) {
  const auto chosen_experts = routing.chosen.values<std::int32_t>(), places = routing.places.values<std::int32_t>();
  const auto host_of = [&](std::int64_t rank) { return axis.hosts()[static_cast<std::size_t>(rank)]; };
  std::int64_t sum = 0;
  for (std::size_t token = 0; token < chosen_experts.size(); token += chosen) {
    std::set<int> others;
    for (std::size_t i = token; i < token + chosen; ++i)
      if (places[i] >= 0) others.insert(host_of(chosen_experts[i] / (experts / axis.size())));
    others.erase(host_of(axis.rank()));
    sum += std::ssize(others);
  }
  return sum;
}

std::string wrong_dispatch(Axis& axis, double capacity, Context& context) {
  const ExpertParallel plain(axis);
  const auto by_host = experts_by_host(axis);
  const Routing routing = random_routing(axis.rank(), capacity, context);
  const ExpertRows home{.experts = experts, .leaves = routing.places.dim(0) / 8, .counts = routing.counts};
  // All ranks must have the same number of leaves. In this test, each leaf is the complete micro-batch of a rank.
  ExpertRows one_leaf{.experts = experts, .leaves = 1, .counts = {}};
  for (std::int64_t e = 0; e < experts; ++e) one_leaf.counts.push_back(home.of(e));
  const ExpertRows here = plain.here(one_leaf, routing, context), too = by_host->here(one_leaf, routing, context);
  if (here.counts != too.counts || here.between != too.between) return "the counts differ";
  const Tensor x = context.typed({routing.places.dim(0), row_width}, DType::f32);
  Random{.seed = 77, .site = static_cast<std::uint32_t>(axis.rank())}.fill_uniform(0, x.values<float>());
  for (const Tensor* weights : {static_cast<const Tensor*>(nullptr), &routing.weights}) {
    const Tensor expected = plain.dispatch(x, weights, routing.places, one_leaf, here, context);
    axis.clear_account();
    const Tensor rows = by_host->dispatch(x, weights, routing.places, one_leaf, too, context);
    if (rows.shape() != expected.shape() || !std::ranges::equal(rows.values<float>(), expected.values<float>()))
      return fmt::format("the rows differ{}", weights ? ", with weights" : "");
    const std::int64_t crossed = axis.account().entries[static_cast<std::size_t>(Collective::all_to_all)].crossing;
    const std::int64_t bytes = crossings(routing, axis) * (row_width + (weights ? chosen : 0)) * 4;
    if (crossed != bytes) return fmt::format("{} bytes crossed hosts, {} were expected", crossed, bytes);
  }
  return "";
}

const std::pair<const char*, Hosts> places[] = {
    {"dp4.ep4", {0, 0, 1, 1}},    {"dp4.ep4", {0, 1, 0, 1}},       {"dp4.ep4", {0, 1, 1, 1}},
    {"dp4.ep4", {3, 2, 1, 0}},    {"dp6.ep6", {0, 0, 1, 1, 1, 2}}, {"dp3.ep3", {1, 1, 0}},
    {"dp4.ep2", {0, 1, 1, 0}},    {"dp2.tp2.ep2", {0, 0, 1, 1}},   {"dp4.tp2.ep4", {0, 1, 0, 1, 2, 2, 2, 2}},
    {"dp2.pp2.ep2", {0, 1, 1, 0}}};

TEST_CASE("experts get the same rows, whether tokens travel once to a host or once for each expert", "[threads]") {
  for (const auto& [word, hosts] : places)
    for (const double capacity : {0.0, 0.7}) {
      INFO(word << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", capacity " << capacity);
      CHECK(on_hosts(parse_layout(word, 0), hosts, [&](Mesh mesh, Memory& shared) {
              Ledger ledger;
              Allocator memory(shared, ledger);
              const auto numerics = fast_numerics();
              Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
              return mesh.along({"ep"}).hosts().empty() ? "" : wrong_dispatch(mesh.along({"ep"}), capacity, context);
            }) == "");
    }
}

TrainingOptions options_for(const Layout& layout) {
  TrainingOptions options = test::options_for("exact", layout);
  options.shape.experts = {.count = 12, .chosen = 3, .ffn = 24, .shared_ffn = 12, .every = 2, .balance = 0.02, .z = 0.003};
  options.exchange.dispatch = Dispatch::by_host;
  return options;
}

TEST_CASE("training that dispatches by host has the bits of one rank", "[threads]") {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    TrainingOptions alone = options_for({});
    alone.recompute = recompute;
    const test::Seen expected = test::train_alone(alone);
    for (const auto& [word, hosts] : places) {
      INFO(word << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")));
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = options_for(layout);
      options.recompute = recompute;
      CHECK(on_hosts(layout, hosts, [&](Mesh mesh, Memory& memory) {
              return difference(expected, test::train(options, std::move(mesh), memory));
            }) == "");
    }
  }
}

// C(n − m, k) / C(n, k), the probability that none of m experts is among the k experts chosen out of n.
double none_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  double share = 1;
  for (std::int64_t i = 0; i < k; ++i) share *= static_cast<double>(n - m - i) / static_cast<double>(n - i);
  return share;
}

TEST_CASE("with uniformly drawn experts, tokens cross hosts as often as probability theory says", "[threads]") {
  constexpr std::int64_t tokens = 4096;
  CHECK(on_hosts(parse_layout("dp4.ep4", 0), {0, 0, 1, 1}, [&](Mesh mesh, Memory& shared) -> std::string {
          Axis& axis = mesh.along({"ep"});
          Ledger ledger;
          Allocator memory(shared, ledger);
          const auto numerics = fast_numerics();
          Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
          const RoutingRule rule{.experts = experts, .chosen = chosen, .sequence = tokens};
          const Tensor logits = context.typed({tokens, experts}, DType::f32), x = context.typed({tokens, 1}, DType::f32);
          const Routing routing =
              route(logits, rule, tokens, memory, {}, forced_choices(ForcedRouting::uniform, rule, axis.rank()));
          const ExpertRows home{.experts = experts, .leaves = 1, .counts = routing.counts};
          const auto rows_across = [&](const ExpertParallel& exchange) {
            const ExpertRows here = exchange.here(home, routing, context);
            axis.clear_account();
            exchange.dispatch(x, nullptr, routing.places, home, here, context);
            return axis.account().entries[static_cast<std::size_t>(Collective::all_to_all)].crossing / 4;
          };
          const double crosses = 1 - none_of(experts / 2, experts, chosen);  // probability per token
          const double expected = tokens * crosses, deviation = std::sqrt(expected * (1 - crosses));
          const std::int64_t by_host = rows_across(*experts_by_host(axis)), plain = rows_across(ExpertParallel(axis));
          if (std::abs(static_cast<double>(by_host) - expected) > 3 * deviation)
            return fmt::format("{} of {} tokens crossed hosts, {:.1f} ± {:.1f} were expected", by_host, tokens, expected,
                               deviation);
          return plain > by_host ? "" : fmt::format("a plain dispatch sent only {} rows", plain);
        }) == "");
}

TEST_CASE("a plan of a dispatch by host knows the bytes of a forced routing", "[threads]") {
  for (const auto& [word, hosts] : places)
    for (const ForcedRouting routing : {ForcedRouting::balanced, ForcedRouting::uniform}) {
      INFO(word << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", " << name_of(routing));
      const Layout layout = parse_layout(word, 0);
      PlanRequest request{.options = options_for(layout),
                          .layout = layout,
                          .backends = {{"", "threads"}},
                          .algorithms = {{"", "auto"}},
                          .hosts = hosts};
      request.options.shape.experts.routing = routing;
      CHECK(on_hosts(layout, hosts, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(request.options, std::move(mesh), memory);
              clear_accounts(run.training.mesh());
              run.training.step(run.read);
              return chorale::difference(plan_rank(request, run.training.mesh().world().rank()).axes,
                                         accounts_of(run.training.mesh()), true);
            }) == "");
    }
}

}  // namespace
}  // namespace chorale
