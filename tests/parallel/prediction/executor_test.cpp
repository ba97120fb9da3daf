// Compares the executor with closed forms. Also checks that folding ranks into classes gives the same times as simulating
// every rank separately.
#include "parallel/prediction/executor.hpp"

#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
namespace {

using Act = StageCost::Act;

Act work(double seconds) {
  Act act;
  act.time.seconds[0] = seconds;
  return act;
}

// A stage whose forward pass takes 1 s and whose backward pass takes 2 s. The chunks of the stage share this time equally.
struct Stage {
  StageCost cost;

  Stage(const PipelineShape& shape, std::int64_t stage, std::int64_t bytes) {
    cost.parts.emplace_back();
    const auto chunks = static_cast<double>(shape.chunks);
    for (const auto kind : {StepPart::Kind::forward, StepPart::Kind::backward})
      for (std::int64_t micro = 0; micro < std::min<std::int64_t>(shape.micro_batches, 3); ++micro)
        for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
          const PipelineAction action{static_cast<Pass>(kind), micro, chunk};
          StageCost::Part part{{kind, micro, chunk}, {}};
          if (const auto source = source_of(shape, {stage, action})) add(part, message(source->stage, stage, bytes), true);
          part.acts.push_back(work((kind == StepPart::Kind::forward ? 1 : 2) / chunks));
          if (const auto taker = taker_of(shape, {stage, action})) add(part, message(stage, taker->stage, bytes), false);
          cost.parts.push_back(part);
        }
    cost.parts.push_back({{}, {}});
  }
  static Script::Call message(std::int64_t from, std::int64_t to, std::int64_t bytes) {
    return {
        .group = "pp", .from = static_cast<int>(from), .to = static_cast<int>(to), .volume = {bytes, bytes, 1, bytes, 1}};
  }
  void add(StageCost::Part& part, const Script::Call& call, bool waits) {
    const int number = static_cast<int>(cost.calls.size());
    cost.calls.push_back(call);
    cost.after.push_back(0);
    part.acts.push_back({.kind = Act::Kind::begin, .call = number});
    if (waits) part.acts.push_back({.kind = Act::Kind::wait, .call = number});
  }
};

ExecutedStep executed(const std::string& name, std::int64_t stages, std::int64_t micro_batches, std::int64_t chunks,
                      std::int64_t bytes) {
  const PipelineSchedule schedule = find_pipeline_schedule(name)->plan({stages, micro_batches, chunks});
  System system = small_system();
  system.host.accelerators = 1;
  system.network.adapters = 1;
  RankGroup pipeline{"pp", "pp", {}};
  std::vector<int> scripts;
  std::vector<std::int64_t> numbers;
  std::vector<std::unique_ptr<Stage>> all;
  std::vector<const StageCost*> costs;
  for (int stage = 0; stage < stages; ++stage) {
    pipeline.ranks.push_back(stage);
    scripts.push_back(stage);
    numbers.push_back(stage);
    all.push_back(std::make_unique<Stage>(schedule, stage, bytes));
    costs.push_back(&all.back()->cost);
  }
  const RankClasses classes = fold({pipeline}, scripts, 1);
  return execute({system, classes, costs, numbers, schedule});
}

double seconds_of(const std::string& name, std::int64_t stages, std::int64_t micro_batches, std::int64_t chunks,
                  std::int64_t bytes) {
  return executed(name, stages, micro_batches, chunks, bytes).seconds;
}

}  // namespace

TEST_CASE("without messages, a pipeline takes its micro-batches and its bubble") {
  CHECK(seconds_of("gpipe", 4, 8, 1, 0) == Approx((8 + 3) * 3.0));
  CHECK(seconds_of("1f1b", 4, 8, 1, 0) == Approx((8 + 3) * 3.0));
  CHECK(seconds_of("1f1b", 7, 9, 1, 0) == Approx((9 + 6) * 3.0));
  CHECK(seconds_of("interleaved", 4, 8, 2, 0) == Approx((8 + 3 / 2.0) * 3.0));
  CHECK(seconds_of("interleaved", 4, 8, 4, 0) == Approx((8 + 3 / 4.0) * 3.0));
}

TEST_CASE("the time line has every pass, and leaves what a stage waits empty") {
  const PipelineTimeline timeline = executed("1f1b", 4, 8, 1, 0).timeline;
  CHECK(timeline.events.size() == 4 * 8 * 2);
  CHECK(timeline.bubble() == Approx(3.0 / 11));
  for (const PipelineEvent& event : timeline.events)
    CHECK(event.ends - event.begins == Approx(event.action.kind == Pass::forward ? 1 : 2));
}

TEST_CASE("a message costs each stage its time twice per micro-batch, as nothing else can run meanwhile") {
  const double message = 0.1;  // the time, in seconds, of 1e9 bytes at 10 GB/s
  const double m = 64, p = 4, all = seconds_of("1f1b", 4, 64, 1, 1'000'000'000);
  CHECK(all == Approx(m * (3 + 2 * message) + (p - 1) * 3).epsilon(0.01));
}

TEST_CASE("one rank takes the time of its kernels") {
  const PredictedStep step = predict_step(small_step("dp1", 4));
  REQUIRE(step.step.classes.size() == 1);
  CHECK(step.seconds == Approx(step.step.classes[0].kernels.total()));
}

TEST_CASE("sums of gradients on hosts of one rank take what a ring takes") {
  StepRequest request = small_step("dp4");
  request.system.accelerator.bandwidth = request.system.accelerator.products[0].flops = 1e18;  // kernels take no time
  request.system.host.accelerators = 1;
  request.system.network = {.adapters = 1, .adapter = 1e9};
  request.plan.options.replicas.bucket_bytes = std::int64_t{1} << 40;
  const double bytes = 4.0 * static_cast<double>(request.plan.options.shape.parameters());
  CHECK(predict_step(request).seconds == Approx(2 * 3.0 / 4 * bytes / 1e9).epsilon(1e-4));
}

// A step in which only calls between hosts take time. Each host has 4 accelerators and 4 adapters of 1 GB/s.
StepRequest network_step(const std::string& layout, int switch_hosts, double oversubscription) {
  StepRequest request = small_step(layout, 96);
  request.system.accelerator.bandwidth = request.system.accelerator.products[0].flops = request.system.host.link = 1e18;
  request.system.network = {
      .adapters = 4, .adapter = 1e9, .switch_hosts = switch_hosts, .oversubscription = oversubscription};
  request.plan.options.replicas.bucket_bytes = std::int64_t{1} << 40;
  return request;
}

double slowdown(const std::string& layout, int switch_hosts, double oversubscription) {
  return predict_step(network_step(layout, switch_hosts, oversubscription)).seconds /
         predict_step(network_step(layout, 0, 1)).seconds;
}

TEST_CASE("gradient rings on all accelerators of a host share the uplink of their leaf switch") {
  // dp4.tp4 has 4 rings over 4 hosts. Each ring leaves each leaf switch once. Without switches, it has an adapter to itself.
  // The uplink of 2 hosts carries 2 · 4 adapters / oversubscription.
  CHECK(slowdown("dp4.tp4", 2, 1) == Approx(1));
  CHECK(slowdown("dp4.tp4", 2, 2) == Approx(1));
  CHECK(slowdown("dp4.tp4", 2, 4) == Approx(2).epsilon(1e-3));
  CHECK(slowdown("dp4.tp4", 2, 16) == Approx(8).epsilon(1e-3));
  CHECK(slowdown("dp4.tp4", 1, 2) == Approx(2).epsilon(1e-3));  // each host has a switch of its own
  CHECK(slowdown("dp4.tp4", 4, 16) == Approx(1));               // all hosts are under one switch
  for (const int all : {1 << 29, 1 << 30, 1'000'000'000}) CHECK(slowdown("dp4.tp4", all, 16) == Approx(1));
}

TEST_CASE("rings over every other host leave their leaf switch at each host") {
  // With dp outermost, the stages of a replica are on neighboring hosts, under one leaf switch. The rings of both stages use
  // the uplink.
  const auto dp_seconds = [](int switch_hosts, double oversubscription) {
    return predict_step(network_step("dp2.tp4.pp2.dp-pp", switch_hosts, oversubscription)).step.classes[0].waits.at("dp");
  };
  CHECK(dp_seconds(2, 4) == Approx(4 * dp_seconds(0, 1)).epsilon(0.01));
  CHECK(dp_seconds(4, 4) == dp_seconds(0, 1));
}

TEST_CASE("a call sends only a share of its connections' bytes over the uplink") {
  // With the algorithm `direct`, each of 4 hosts sends as many bytes to each of the 3 others. 2 of these are under the other
  // switch, so 2 hosts send 4/3 of a connection over their uplink. 4 groups share the uplink, which carries 2 adapters.
  StepRequest request = network_step("dp4.tp4", 2, 4), without = network_step("dp4.tp4", 0, 1);
  for (StepRequest* r : {&request, &without}) r->plan.algorithms = {{"", "direct"}};
  CHECK(predict_step(request).seconds == Approx(8.0 / 3 * predict_step(without).seconds).epsilon(1e-3));
}

TEST_CASE("messages between stages take the uplink only if the stages are under different leaf switches") {
  // With dp1.tp4.pp4, each host has one stage. Under switches of 2 hosts, only the messages between the middle stages use an
  // uplink. Each of 4 connections has an adapter, or a quarter of the uplink.
  const double within = predict_step(network_step("dp1.tp4.pp2", 2, 16)).seconds;
  CHECK(within == predict_step(network_step("dp1.tp4.pp2", 0, 1)).seconds);
  CHECK(slowdown("dp1.tp4.pp2", 1, 3) == Approx(3).epsilon(0.01));
  const double middle = slowdown("dp1.tp4.pp4", 2, 16);
  CHECK(middle > 4);
  CHECK(middle < 8.01);
}

TEST_CASE("with leaf switches, classes of ranks give the same times as every rank by itself, bit for bit") {
  const std::string algorithm = GENERATE("ring", "direct");
  const auto word = GENERATE(as<std::string>{}, "dp8", "dp4.tp2", "dp4.tp2.pp4", "dp8.tp4.pp2.z1.sp", "dp1.tp4.pp8",
                             "dp4.cp4.tp2.pp2.z2", "dp16.z3", "dp16.tp2.pp2.v2", "dp8.rep4.z3.hpz", "dp4.tp3", "dp6.tp4",
                             "dp4.tp2.pp4.dp-pp", "dp4.tp4.pp2.dp-pp");
  for (const auto& [switch_hosts, oversubscription] : {std::pair{1, 2.0}, {2, 4.0}, {3, 3.0}, {4, 8.0}}) {
    StepRequest request = small_step(word, 192);
    request.system.host.latency = 3e-6;
    request.system.network.latency = 7e-6;
    request.system.network.switch_hosts = switch_hosts;
    request.system.network.oversubscription = oversubscription;
    request.plan.algorithms[""] = algorithm;
    const PredictedStep folded = predict_step(request);
    request.folded = false;
    const PredictedStep apart = predict_step(request);
    INFO(word << ", " << algorithm << ", " << switch_hosts << " hosts per switch: " << folded.ranks.classes.size()
              << " classes");
    CHECK(folded.seconds == apart.seconds);
    for (const RankClass& rank : apart.ranks.classes) {
      const int one = folded.ranks.class_of[static_cast<std::size_t>(rank.rank)];
      const int same = apart.ranks.class_of[static_cast<std::size_t>(rank.rank)];
      CHECK(folded.step.classes[static_cast<std::size_t>(one)].seconds ==
            apart.step.classes[static_cast<std::size_t>(same)].seconds);
    }
    if (switch_hosts == 2 && word == "dp8.tp4.pp2.z1.sp") CHECK(folded.ranks.classes.size() < 64);
  }
}

TEST_CASE("classes of ranks give the same times as every rank by itself, bit for bit") {
  const auto word = GENERATE(as<std::string>{}, "dp8", "dp4.tp2", "dp2.tp2.pp2", "dp4.tp2.pp4", "dp8.tp4.pp2.z1.sp",
                             "dp1.tp4.pp8", "dp2.cp2.tp2", "dp4.cp4.tp2.pp2.z2", "dp8.z3", "dp16.tp2.pp2.v2",
                             "dp4.rep2.z3.hpz", "dp4.tp3", "dp2.tp3.pp2", "dp6");
  for (const std::int64_t batch : {96, 192}) {
    StepRequest request = small_step(word, batch);
    request.system.host.latency = 3e-6;
    request.system.network.latency = 7e-6;
    request.system.software.launch = 5e-6;
    const PredictedStep folded = predict_step(request);
    request.folded = false;
    const PredictedStep apart = predict_step(request);
    INFO(word << ", batch " << batch << ": " << folded.ranks.classes.size() << " classes");
    CHECK(apart.ranks.classes.size() == static_cast<std::size_t>(request.plan.layout.ranks()));
    const bool uneven = word.find("tp3") != std::string::npos;  // every rank has a different position, so no ranks can be
                                                                // folded into a class
    CHECK((folded.ranks.classes.size() < apart.ranks.classes.size()) != uneven);
    CHECK(folded.seconds == apart.seconds);
    for (std::size_t rank = 0; rank < apart.step.classes.size(); ++rank) {
      const auto one =
          static_cast<std::size_t>(folded.ranks.class_of[static_cast<std::size_t>(apart.ranks.classes[rank].rank)]);
      CHECK(folded.step.classes[one].seconds == apart.step.classes[rank].seconds);
    }
  }
}

// plan_is_measured_test.cpp shows that a real step sends the bytes of its plan. So a simulated step sends as many bytes as a
// real step.
TEST_CASE("a simulated step sends as many bytes as its plan says") {
  const auto word = GENERATE(as<std::string>{}, "dp8", "dp2.tp2.pp2", "dp2.tp4.sp.z1", "dp4.pp2.v2", "dp2.cp2.tp2",
                             "dp4.rep2.z3.hpz", "dp8.z3", "dp4.pp2.zb-h1", "dp8.z2");
  for (const bool overlaps : {true, false}) {
    StepRequest request = small_step(word, 64);
    request.system.software.overlaps_calls = overlaps;
    const PredictedStep step = predict_step(request);
    for (std::size_t c = 0; c < step.ranks.classes.size(); ++c) {
      const int rank = step.ranks.classes[c].rank;
      PlanRequest plan = request.plan;
      plan.hosts = hosts_of(request.system, plan.layout.ranks());
      std::int64_t planned = 0;
      for (const auto& [axis, account] : plan_rank(plan, rank).axes)
        for (const Account::Entry& entry : account.entries) planned += entry.bytes;
      INFO(word << ", rank " << rank);
      CHECK(step.step.classes[c].sent == planned);
    }
  }
}

TEST_CASE("the same step has the same time, bit for bit, and more bytes at a time take longer") {
  const StepRequest request = small_step("dp4.tp2.pp2");
  CHECK(predict_step(request).seconds == predict_step(request).seconds);
  StepRequest crowded = request;
  crowded.system.network.adapters = 1;  // four ranks share one adapter instead of having one each
  CHECK(predict_step(crowded).seconds > predict_step(request).seconds);
}

}  // namespace chorale::test
