// States where the two schedulers of a call agree: the list scheduler (cost.hpp), in which messages queue at the ports of
// ranks, and the engine (system_call.hpp), in which messages share links. If at most one message at a time is on each link,
// or if all messages of a link begin together and the next step waits for all of them, the times are equal. If messages of
// one step overlap those of the next, the engine shares the link between the two, and the list scheduler sends the older one
// first. The list scheduler is then earlier, never later.
#include <set>

#include <chorale/algorithm.hpp>
#include "collectives/analysis/cost.hpp"
#include "parallel/prediction/system_call.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
namespace {

const std::set<std::pair<Collective, std::string>> overlaps_steps{
    {Collective::all_gather, "bruck"},
    {Collective::all_gather, "circulant"},
    {Collective::all_reduce, "binomial_tree"},
    {Collective::all_reduce, "circulant"},
    {Collective::all_reduce, "double_binary_tree"},
    {Collective::all_reduce, "rabenseifner"},
    {Collective::all_reduce, "recursive_doubling"},
    {Collective::barrier, "binomial_tree"},
    {Collective::broadcast, "binomial_tree"},
    {Collective::broadcast, "hierarchical"},
    {Collective::broadcast, "scatter_all_gather"},
    {Collective::reduce, "binomial_tree"},
    {Collective::reduce, "reduce_scatter_gather"},
    {Collective::reduce_scatter, "circulant"},
    {Collective::reduce_scatter, "recursive_halving"},
    {Collective::scatter, "binomial_tree"},
};

}  // namespace

TEST_CASE("the list scheduler and the engine agree on all algorithms whose steps do not overlap") {
  std::set<std::pair<Collective, std::string>> differed;
  for (const Algorithm& algorithm : all_algorithms())
    for (const int ranks : {2, 3, 4, 7, 8, 16}) {
      const Problem problem = Problem::even(algorithm.what, 64 * ranks, ranks, 0);
      if (!fits(algorithm, problem)) continue;
      const std::vector<Schedule> schedules = plan_all_ranks(algorithm, problem);
      for (const auto& [latency, link] : {std::pair{0.0, 100.0}, std::pair{1.0, 1e18}, std::pair{0.25, 100.0}}) {
        System system = small_system();
        system.host = {.accelerators = ranks, .link = link, .latency = latency};
        const double engine = seconds_of_call(schedules, {}, 4, system);
        const double list = predict(schedules, 4, {latency, 1 / link, 0});
        INFO(name_of(algorithm.what) << " " << algorithm.name << " of " << ranks << " ranks, latency " << latency);
        CHECK(list <= engine * (1 + 1e-9));
        if (list >= engine * (1 - 1e-9)) continue;
        CHECK(list > 0.3 * engine);
        differed.insert({algorithm.what, algorithm.name});
      }
    }
  CHECK(differed == overlaps_steps);
}

}  // namespace chorale::test
