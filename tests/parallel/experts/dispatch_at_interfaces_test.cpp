// Measures dispatch by host at the network interfaces of several hosts. If experts are drawn uniformly, dispatch by host
// must send D(g)/k of the bytes of a plain dispatch, within three standard deviations. D(g) is defined in
// parallel/experts/experts_by_host.cpp.
//
// For each token, let a be the number of other hosts to which the token is sent, and let b be the number of its experts on
// these hosts. The bytes of both dispatches then have the ratio r = Σa/Σb, which approaches R = E[a]/E[b] = D(g)/k. For T
// tokens, the standard deviation of r is about σ(a − R·b) / (E[b]·√T). A run on one host checks nothing, because no bytes
// cross a network interface.
#include <bit>
#include <cmath>
#include <set>

#include "layers/context.hpp"
#include "parallel/experts/experts.hpp"
#include "src/base/machine_load.hpp"
#include "src/math/forced_routing.hpp"
#include "src/math/routing.hpp"
#include "tests/collectives/worlds.hpp"

namespace chorale {
namespace {

// Interfaces also count acknowledgements, and retransmissions on a busy machine. On an idle machine, runs differ by less
// than 0.001.
constexpr double overhead = 0.02;
constexpr std::int64_t expert_count = 12, experts_per_token = 3, tokens = 1024, token_width = 512;

struct Expected {
  double ratio = 0, deviation = 0;
};

// Returns the expected ratio for a token on host 0, computed over all choices of k experts. Each of the `hosts` hosts has
// the same number of experts.
Expected expected_ratio(int hosts, double all_tokens) {
  const auto of_other_hosts = ((1U << expert_count) - 1) & ~((1U << (expert_count / hosts)) - 1);
  double choices = 0, a1 = 0, b1 = 0, a2 = 0, b2 = 0, ab = 0;
  for (unsigned set = 0; set < 1U << expert_count; ++set) {
    if (std::popcount(set) != experts_per_token) continue;
    double a = 0;
    const double b = std::popcount(set & of_other_hosts);
    for (int host = 1; host < hosts; ++host)
      a += (set >> (host * expert_count / hosts) & ((1U << (expert_count / hosts)) - 1)) != 0;
    choices += 1;
    a1 += a;
    b1 += b;
    a2 += a * a;
    b2 += b * b;
    ab += a * b;
  }
  const double r = a1 / b1;
  return {r, std::sqrt((a2 - 2 * r * ab + r * r * b2) / choices) / (b1 / choices * std::sqrt(all_tokens))};
}

// Returns the number of bytes that the network interfaces of all hosts send during `work`. Only rank 0 gets the result.
template <class Work>
double bytes_sent(const Axis& axis, Clock& clock, Work work) {
  const auto all_sent = [&] {
    mpi::sleep_until_all(test::world().world(), clock);
    const std::vector<std::string> sent =
        mpi::gather(test::world().world(), fmt::format("{}", read_machine(clock).bytes_out));
    double sum = 0;
    std::set<int> seen;
    for (std::size_t rank = 0; rank < sent.size(); ++rank)
      if (seen.insert(axis.hosts()[rank]).second) sum += std::stod(sent[rank]);
    return sum;
  };
  const double before = all_sent();
  work();
  return all_sent() - before;
}

TEST_CASE("at the network interfaces, a dispatch by host sends the expected share of a plain one", "[spmd][hosts]") {
  SystemClock clock;
  for (const Backend& backend : all_backends()) {
    if (!test::joins_all(backend)) continue;
    const int ranks = test::world().size();
    const Worlds worlds(open_world(backend.name, test::world(), clock));
    if (expert_count % ranks != 0 || ranks == 1) continue;
    const Mesh mesh(parse_layout(fmt::format("dp{0}.ep{0}", ranks), 0), worlds, {});
    Axis& axis = mesh.along({"ep"});
    const int hosts = number_of_hosts(axis.hosts());
    if (hosts < 2 || ranks % hosts != 0) continue;
    INFO(backend.name << ", " << hosts << " hosts");

    Ledger ledger;
    Allocator memory(worlds.memory(), ledger);
    const auto numerics = fast_numerics();
    Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
    const RoutingRule rule{.experts = expert_count, .chosen = experts_per_token, .sequence = tokens};
    const Tensor logits = context.typed({tokens, expert_count}, DType::f32),
                 x = context.typed({tokens, token_width}, DType::f32);
    const Routing routing =
        route(logits, rule, tokens, memory, {}, forced_choices(ForcedRouting::uniform, rule, axis.rank()));
    const ExpertRows home{.experts = expert_count, .leaves = 1, .counts = routing.counts};
    const auto sent_by = [&](const ExpertParallel& exchange) {
      const ExpertRows here = exchange.here(home, routing, context);
      exchange.dispatch(x, nullptr, routing.places, home, here, context);  // the first call opens connections
      return bytes_sent(axis, clock, [&] { exchange.dispatch(x, nullptr, routing.places, home, here, context); });
    };
    const double plain = sent_by(ExpertParallel(axis)), by_host = sent_by(*experts_by_host(axis));
    if (test::world().rank() == 0) {
      const Expected expected = expected_ratio(hosts, static_cast<double>(tokens * ranks));
      INFO(
          fmt::format("{} of {} bytes; expected ratio {:.4f} ± {:.4f}", by_host, plain, expected.ratio, expected.deviation));
      CHECK(std::abs(by_host / plain - expected.ratio) < 3 * expected.deviation + overhead);
    }
  }
}

}  // namespace
}  // namespace chorale
