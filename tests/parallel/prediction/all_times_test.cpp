// Prints every kind of predicted time over a grid of algorithms, layouts and pipeline schedules, with all digits. A change
// that must not change predictions is checked by two builds:
//
//   TIMES=before.txt build/tests_run "[.all-times]"      …      TIMES=after.txt build/tests_run "[.all-times]"
//   paste -d ' ' before.txt after.txt | awk '$1 != $3 || ($2 - $4) ^ 2 > ($2 * 1e-9) ^ 2'
//
// 100,000 lines in ten seconds.
#include <fmt/os.h>

#include <cstdlib>
#include <functional>

#include <chorale/algorithm.hpp>
#include "collectives/analysis/cost.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/chunking.hpp"
#include "parallel/pipeline/simulate.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "parallel/prediction/system_call.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/prediction/sample_prices.hpp"
#include "tests/parallel/prediction/small_system.hpp"
#include "tests/parallel/small_training.hpp"

namespace chorale::test {
namespace {

using Print = std::function<void(const std::string& key, double value)>;

void print_call(const std::vector<Schedule>& ranks, const std::string& key, const Print& print) {
  for (const Price& price : {Price{1e-6, 1e-9, 2e-10}, Price{0, 1e-9, 0}, Price{3e-5, 1.25e-10, 3e-11}}) {
    const Timeline timeline = simulate(ranks, 4, price);
    double transfers = 0, spans = 0;
    for (const Timeline::Transfer& one : timeline.transfers) transfers += one.leaves + 3 * one.is_in;
    for (const auto& of_rank : timeline.spans)
      for (const Timeline::Span& span : of_rank) spans += span.begins + 3 * span.ends;
    print("ports/" + key, timeline.seconds);
    print("ports/transfers/" + key, transfers);
    print("ports/spans/" + key, spans);
    print("ports/mapped/" + key, predict_mapped(ranks, 4, price));
  }
  const std::vector<int>& hosts = ranks[0].problem().hosts;
  for (const int cores : {1, 2, 16}) {
    prediction::Site site = prediction::Site::one_host(static_cast<int>(ranks.size()), cores);
    const std::string here = fmt::format("{}-cores/{}", cores, key);
    if (hosts.empty()) print("mapped/" + here, prediction::mapped(ranks, 4, site, sample_prices()));
    if (!hosts.empty()) site.host_of = hosts;
    print("messages/" + here, prediction::messages(ranks, 4, site, sample_prices(), sample_prices(true)));
    if (!hosts.empty()) site.machine_of = hosts;
    print("messages-apart/" + here, prediction::messages(ranks, 4, site, sample_prices(), sample_prices(true)));
  }
  System system = small_system();
  system.host = {.accelerators = 4, .link = 100e9, .latency = 2e-6};
  system.network = {.adapters = 4, .adapter = 20e9, .latency = 7e-6, .collective = 0.9};
  if (!hosts.empty() || ranks.size() <= 4) print("system/" + key, seconds_of_call(ranks, hosts, 4, system));
}

void print_calls(const Print& print) {
  const std::vector<std::vector<int>> spread{
      {0, 1}, {0, 0, 1, 1}, {0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 0, 1, 1, 1, 1}};
  std::vector<std::pair<int, std::vector<int>>> worlds;
  for (const int size : {2, 3, 4, 5, 8, 12}) worlds.push_back({size, {}});
  for (const auto& hosts : spread) worlds.push_back({static_cast<int>(hosts.size()), hosts});
  for (const Algorithm& algorithm : all_algorithms())
    for (const auto& [size, hosts] : worlds)
      for (const bool in_place : {false, true})
        for (const std::int64_t count : {0, 7, 1000, 100003})
          for (const int chunks : {1, 8}) {
            if (chunks > 1 && (count < 1000 || in_place)) continue;
            const std::int64_t elements = algorithm.what == Collective::barrier ? 0 : count;
            const Problem problem = Problem::even(algorithm.what, elements, size, 0, in_place, hosts);
            if (!fits(algorithm, problem)) continue;
            std::vector<Schedule> ranks = plan_all_ranks(algorithm, problem);
            for (Schedule& rank : ranks) rank = cut_into_chunks(rank, chunks);
            print_call(ranks,
                       fmt::format("{}/{}/{}/{}/{}/{}/{}", name_of(algorithm.what), algorithm.name, size,
                                   hosts.empty() ? 1 : hosts.back() + 1, in_place, count, chunks),
                       print);
          }
}

void print_system_steps(const Print& print) {
  for (const std::string word : {"dp8", "dp4.tp2", "dp2.tp2.pp2", "dp4.tp2.pp4", "dp8.tp4.pp2.z1.sp", "dp1.tp4.pp8",
                                 "dp2.cp2.tp2", "dp4.cp4.tp2.pp2.z2", "dp8.z3", "dp16.tp2.pp2.v2", "dp4.rep2.z3.hpz",
                                 "dp4.tp3", "dp2.tp3.pp2", "dp6", "dp4.pp2.zb-h1", "dp4.pp4.v-min"})
    for (const bool folded : {true, false})
      for (const bool overlaps : {true, false}) {
        StepRequest request = small_step(word, 192);
        request.system.host.latency = 3e-6;
        request.system.network.latency = 7e-6;
        request.system.software.launch = 5e-6;
        request.system.software.message = 2e-6;
        request.system.software.overlaps_calls = overlaps;
        request.folded = folded;
        const PredictedStep step = predict_step(request);
        const std::string key = fmt::format("system-step/{}/{}/{}", word, folded, overlaps);
        print(key, step.seconds);
        for (const ClassTime& one : step.step.classes) {
          print(key + "/class", one.seconds + 3 * one.launching + 7 * one.calls);
          for (const auto& [axis, seconds] : one.waits) print(key + "/waits/" + axis, seconds);
        }
      }
}

void print_cpu_steps(const Print& print) {
  Machine machine{.signature = machine_signature(), .cores = 2};
  machine.computes = {{.type = "f32", .ranks = 2, .product = 1e9, .attention = 5e8, .elements = 1e9, .update = 2e9}};
  for (const char* span : {"host", "network"}) {
    const bool is_network = span != std::string("host");
    machine.levels.push_back({.backend = "ucx", .span = span, .hosts = 1 + is_network, .shared_cores = is_network});
    prediction::set_prices(machine.levels.back(), sample_prices(is_network));
  }
  for (const char* word :
       {"dp1", "dp2", "dp4", "dp8", "dp1.tp2", "dp1.tp4", "dp1.pp2", "dp2.tp2", "dp2.pp2", "dp4.z1", "dp4.z2", "dp4.z3",
        "dp1.cp2", "dp1.tp2.pp2", "dp1.pp2.gpipe", "dp2.tp2.z3", "dp1.tp2.sp", "dp4.tp2"}) {
    PlanRequest request{.options = small(), .layout = parse_layout(word, 0)};
    request.options.batch.micro = 2;
    request.options.batch.global = 16;
    request.backends = {{"", "ucx"}};
    request.selector = std::make_shared<const Selector>(TuningTable{}, machine);
    for (const int hosts : {1, 2}) {
      request.hosts.clear();
      for (std::int64_t rank = 0; hosts > 1 && rank < request.layout.ranks(); ++rank)
        request.hosts.push_back(static_cast<int>(2 * rank / request.layout.ranks()));
      const PredictedCpuStep step = predict_cpu_step(request);
      print(fmt::format("cpu-step/{}/{}", word, hosts), step ? step.time.seconds : -1);
      for (const double seconds : step.time.computes) print(fmt::format("cpu-step/{}/{}/computes", word, hosts), seconds);
    }
  }
}

void print_pipelines(const Print& print) {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    for (const std::int64_t stages : {1, 2, 3, 4, 8})
      for (const std::int64_t micro_batches : {1, 3, 4, 8, 16})
        for (const std::int64_t chunks : {1, 2, 4}) {
          const PipelineShape shape{stages, micro_batches, chunks, row.placement};
          if (!fits(row, shape)) continue;
          PipelineSeconds seconds = equal_parts(shape);
          for (std::size_t i = 0; i < seconds.parts.size(); ++i)
            seconds.parts[i] = {1.0 + 0.1 * static_cast<double>(i), 1.5, 0.75};
          seconds.message = 0.3;
          const PipelineTimeline even = simulate(row.plan(shape), equal_parts(shape)),
                                 uneven = simulate(row.plan(shape), seconds);
          const std::string key = fmt::format("pipeline/{}/{}/{}/{}", row.name, stages, micro_batches, chunks);
          print(key, even.seconds());
          print(key + "/bubble", even.bubble());
          print(key + "/uneven", uneven.seconds());
        }
}

}  // namespace

TEST_CASE("prints all predicted times", "[.all-times]") {
  const char* const file = std::getenv("TIMES");
  REQUIRE(file != nullptr);
  fmt::ostream out = fmt::output_file(file);
  const Print print = [&](const std::string& key, double value) { out.print("{} {:.17g}\n", key, value); };
  for (const auto print_some : {print_calls, print_system_steps, print_cpu_steps, print_pipelines}) print_some(print);
}

}  // namespace chorale::test
