// Tests plans. With ring algorithms, the planned traffic must equal closed forms. Planned memory, FLOPs and bubbles must
// equal published formulas.
#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"

#include <chorale/algorithm.hpp>
#include "tests/catch.hpp"
#include "tests/parallel/plan/plan_requests.hpp"
#include "tests/sample.hpp"

namespace chorale {
namespace {

using test::request_for;

TEST_CASE("difference() names the axis and operation whose traffic differs from the plan") {
  Accounts planned{{"dp", {}}, {"tp", {}}};
  planned["tp"].entries[0] = {3, 100};
  Accounts made = planned;
  CHECK(difference(planned, made, false) == "");
  made["tp"].entries[0].bytes = 96;
  CHECK(difference(planned, made, false) == "tp all_reduce: planned 3 calls and 100 bytes, made 3 and 96");
  made["tp"].entries[0].bytes = -1;  // −1: an algorithm inside MPI or NCCL, whose traffic is unknown
  CHECK(difference(planned, made, false) == "");
  ++made["tp"].entries[0].calls;
  CHECK(difference(planned, made, false) == "tp all_reduce: planned 3 calls and 100 bytes, made 4 and -1");
  made = planned;
  made["tp"].entries[0].crossing = 50;
  CHECK(difference(planned, made, false) == "tp all_reduce: planned 0 bytes to other hosts, sent 50");
  made = planned;
  constexpr auto exchange = static_cast<std::size_t>(Collective::all_to_all);
  planned["tp"].entries[exchange] = {2, 64, 0, 64};
  made["tp"].entries[exchange] = {2, 80, 0, 80};
  CHECK(difference(planned, made, false) == "");
  CHECK(difference(planned, made, true) == "tp all_to_all: planned 2 calls and 64 bytes, made 2 and 80");
  made["tp"].entries[exchange].due = 72;
  CHECK(difference(planned, made, false) == "tp all_to_all: the rows that leave this rank are 72 bytes, sent 80");
  made["tp"].entries[exchange].bytes = -1;
  CHECK(difference(planned, made, true) == "");
}

TEST_CASE("difference() names the category and direction of the first bytes to a file that differ") {
  TierTraffic planned, made;
  CHECK(difference(planned, made) == "");
  planned.written[static_cast<std::size_t>(Category::optimizer)] = 8;
  CHECK(difference(planned, made) == "optimizer written: planned 8 bytes, made 0");
  made.read[static_cast<std::size_t>(Category::params)] = 5;
  CHECK(difference(planned, made) == "params read: planned 0 bytes, made 5");
}

TEST_CASE("model states take the published bytes per parameter") {
  for (const int ranks : {2, 4}) {
    for (int zero = 0; zero < 4; ++zero)
      for (const DType compute : {DType::f32, DType::bf16}) {
        PlanRequest request = request_for(parse_layout(fmt::format("dp{}.z{}", ranks, zero), 0), "ring", compute);
        request.options.shape.vocabulary = 64;  // the number of ranks then divides every bucket, so there is no padding
        const RankPlan plan = plan_rank(request, 0);
        const std::int64_t psi = plan.parameters, n = ranks, wide = compute == DType::f32 ? 4 : 2;
        const std::int64_t state = compute == DType::f32 ? 8 : 12;
        const std::int64_t values = zero == 3 ? wide * psi / n : wide * psi;
        const std::int64_t gradients = zero >= 2 ? 4 * psi / n : 4 * psi,
                           optimizer = zero >= 1 ? state * psi / n : state * psi;
        INFO(ranks << " ranks, ZeRO-" << zero << ", " << name_of(compute));
        CHECK(plan.held[static_cast<std::size_t>(Category::params)] == values);
        CHECK(plan.held[static_cast<std::size_t>(Category::grads)] == gradients);
        CHECK(plan.held[static_cast<std::size_t>(Category::optimizer)] == optimizer);
        if (compute == DType::f32) continue;
        request.options.optimizer.masters = false;
        CHECK(plan_rank(request, 0).held[static_cast<std::size_t>(Category::optimizer)] == optimizer - optimizer / 3);
      }
  }
}

std::int64_t sent_by(const RankPlan& plan, const char* axis) {
  std::int64_t bytes = 0;
  for (const Account::Entry& entry : plan.axes.at(axis).entries) bytes += entry.bytes;
  return bytes;
}

TEST_CASE("with ring, data parallelism sends the bytes of the closed forms") {
  constexpr std::int64_t n = 4, micro_batches = 3;
  for (int zero = 0; zero < 4; ++zero) {
    PlanRequest request = request_for(parse_layout(fmt::format("dp{}.z{}", n, zero), 0), "ring");
    request.options.shape.vocabulary = 64;
    request.options.batch.micro = 1;
    const RankPlan plan = plan_rank(request, 0);
    const std::int64_t table = 64 * 48;  // the table is tied, so the head gathers it again in both passes
    const std::int64_t elements[] = {2 * plan.parameters, 2 * plan.parameters, (micro_batches + 1) * plan.parameters,
                                     micro_batches * (3 * plan.parameters + 2 * table)};
    INFO("ZeRO-" << zero);
    CHECK(sent_by(plan, "dp") == 4 * elements[zero] * (n - 1) / n);
  }
}

// The total number of bytes that all ranks send on this axis.
Account::Entry sent_by_all(const PlanRequest& request, const char* axis) {
  Account::Entry sum;
  for (int rank = 0; rank < request.layout.ranks(); ++rank) {
    const RankPlan plan = plan_rank(request, rank);
    for (const Account::Entry& entry : plan.axes.at(axis).entries) {
      sum.bytes += entry.bytes;
      sum.crossing += entry.crossing;
    }
  }
  return sum;
}

TEST_CASE("of what an axis sends, those bytes cross hosts that go to ranks on other hosts") {
  const auto sent = [](const char* word, const char* algorithm, const std::vector<int>& hosts, const char* axis) {
    PlanRequest request = request_for(parse_layout(word, 0), algorithm);
    request.options.shape.vocabulary = 64;  // the size of every bucket is a multiple of 4
    request.hosts = hosts;
    return sent_by_all(request, axis);
  };
  const std::vector<int> pairs{0, 0, 1, 1}, alternating{0, 1, 0, 1};
  const Account::Entry ring = sent("dp4", "ring", pairs, "dp");
  CHECK((ring.bytes > 0 && ring.crossing * 2 == ring.bytes));
  CHECK(sent("dp4", "ring", alternating, "dp").crossing == ring.bytes);
  CHECK(sent("dp4", "ring", {}, "dp").crossing == 0);
  // In a ring, one rank of each host sends 1.5 times the size of the vector to the other host. In a hierarchical all-reduce,
  // each host sends the number of bytes of the vector.
  CHECK(sent("dp4", "hierarchical", pairs, "dp").crossing * 3 == ring.crossing * 2);
  for (const auto& [word, near, far] : {std::tuple{"dp2.pp2", "dp", "pp"}, {"dp2.pp2.dp-pp", "pp", "dp"}}) {
    INFO(word);
    CHECK(sent(word, "ring", pairs, near).bytes > 0);
    CHECK(sent(word, "ring", pairs, near).crossing == 0);
    CHECK(sent(word, "ring", pairs, far).crossing == sent(word, "ring", pairs, far).bytes);
  }
}

// Compares two models that differ by one layer, so that the embedding and the head cancel in the difference.
TEST_CASE("with ring, tensor parallelism sends the bytes of the closed forms") {
  for (const std::int64_t t : {2, 3})
    for (const bool sequence : {false, true}) {
      constexpr std::int64_t micro_batches = 3;
      PlanRequest request = request_for(parse_layout(fmt::format("dp1.tp{}{}", t, sequence ? ".sp" : ""), 0), "ring");
      request.options.batch.micro = request.options.batch.global / micro_batches;
      const ModelShape& shape = request.options.shape;
      const std::int64_t before = sent_by(plan_rank(request, 0), "tp"), h = shape.width;
      const std::int64_t bsh = request.options.batch.micro * shape.sequence * h;
      ++request.options.shape.layers;
      // With sequence parallelism, the scattered rows are gathered again for dW, and the gradients of norms and biases are
      // summed once per step.
      const std::int64_t elements = sequence ? micro_batches * 10 * bsh + 2 * 6 * h : micro_batches * 8 * bsh;
      INFO(to_string(request.layout));
      CHECK(sent_by(plan_rank(request, 0), "tp") - before == 4 * elements * (t - 1) / t);
    }
}

TEST_CASE("a pipeline sends one message per boundary, micro-batch and direction") {
  for (const auto& [schedule, chunks] : {std::pair{"gpipe", 1}, {"1f1b", 1}, {"zb-h1", 1}, {"interleaved", 2}})
    for (const bool sequence : {false, true}) {
      constexpr std::int64_t stages = 2, tensor = 2, micro_batches = 12;
      PlanRequest request = request_for(
          parse_layout(fmt::format("dp1.tp{}.pp{}{}.v{}.{}", tensor, stages, sequence ? ".sp" : "", chunks, schedule), 0),
          "ring");
      std::int64_t calls = 0, bytes = 0;
      for (int rank = 0; rank < stages * tensor; ++rank) {
        const Account::Entry entry = plan_rank(request, rank).axes.at("pp").entries[messages];
        calls += entry.calls;
        bytes += entry.bytes;
      }
      const std::int64_t bsh = request.options.shape.sequence * request.options.shape.width;
      const std::int64_t crossings = 2 * (stages * chunks - 1) * micro_batches;
      INFO(to_string(request.layout));
      CHECK(calls == crossings * tensor);
      CHECK(bytes == 4 * crossings * bsh * (sequence ? 1 : tensor));  // with sp, each tensor rank sends its share
    }
}

TEST_CASE("the FLOPs of all ranks add up to the model's") {
  test::Sample fifth(5);
  for (const char* kind : {"gpt2", "llama", "experts", "experts by zipf"})
    for (const int world : {1, 2, 4, 6, 8}) {
      ModelShape shape = request_for({}, "ring").options.shape;
      if (std::string(kind) == "llama") {
        shape.family = ModelFamily::llama;
        shape.tied = false;
        shape.head = 10;
        shape.qk_norm = true;
      }
      if (std::string(kind).starts_with("experts"))
        shape.experts = {.count = 6, .chosen = 2, .ffn = 24, .shared_ffn = 12, .every = 2};
      if (std::string(kind) == "experts by zipf") shape.experts.routing = ForcedRouting::zipf;
      for (const Layout& layout : all_layouts({shape, world, 12, 1})) {
        if (!fifth.takes()) continue;
        PlanRequest request = request_for(layout, "ring");
        request.options.shape = shape;
        double flops = 0;
        for (int rank = 0; rank < world; ++rank) flops += plan_rank(request, rank).flops;
        INFO(to_string(layout) << " " << kind);
        CHECK(flops == Approx(shape.flops_per_token() * 12 * static_cast<double>(shape.sequence)).epsilon(1e-12));
      }
    }
}

// All tokens of all sequences choose experts of rank 0.
TEST_CASE("with a forced routing, the FLOPs of a rank are those of the rows of its experts") {
  PlanRequest request = request_for(parse_layout("dp2.ep2", 0), "ring");
  ModelShape& shape = request.options.shape;
  shape.experts = {.count = 6, .chosen = 2, .ffn = 24, .every = 2, .routing = ForcedRouting::one};
  const double of_a_row = 6.0 * 2 * static_cast<double>(shape.width * shape.experts.ffn);
  const double rows = 2 * 2 * 12 * static_cast<double>(shape.sequence);  // blocks × choices × sequences × tokens
  CHECK(plan_rank(request, 0).flops - plan_rank(request, 1).flops == Approx(of_a_row * rows).epsilon(1e-12));
  shape.experts.capacity = 0.5;  // an expert keeps ⌈0.5 · 2 · 12 / 6⌉ = 2 of 12 tokens
  CHECK(plan_rank(request, 0).flops - plan_rank(request, 1).flops == Approx(of_a_row * rows / 6).epsilon(1e-12));
}

// Returns the maximum peak memory over ranks. This function plans all micro-batches of the step. shortage_of and has_room
// plan only a few micro-batches if more micro-batches would not take more memory.
std::int64_t most_bytes(const PlanRequest& request) {
  std::int64_t most = 0;
  for (int rank = 0; rank < static_cast<int>(request.layout.ranks()); ++rank)
    most = std::max(most, plan_rank(request, rank).peak_bytes);
  return most;
}

TEST_CASE("a layout has room if and only if the limit is at least the peak of its fullest rank") {
  std::vector<Layout> layouts = all_layouts({request_for({}, "ring").options.shape, 4, 24, 1});
  for (const char* word : {"dp1", "dp1.pp2", "dp2.pp2.gpipe", "dp1.pp4.zb-h1", "dp1.pp2.v2"})
    layouts.push_back(parse_layout(word, 0));
  for (const Layout& layout : layouts) {
    PlanRequest request = request_for(layout, "ring");
    request.options.shape.vocabulary = 60;  // the first tensor rank has at most one vocabulary block more than the last
    request.options.batch.global = 24;
    request.options.batch.micro = 1;
    const OptionsOf options_of = [&](const Layout&) { return request.options; };
    const std::int64_t most = most_bytes(request);
    INFO(to_string(layout) << ", " << most << " bytes");
    request.options.memory.limit = most;
    CHECK((!shortage_of(layout, options_of, "") && has_room(layout, options_of)));
    request.options.memory.limit = most - 1;
    CHECK((shortage_of(layout, options_of, "") && !has_room(layout, options_of)));
    request.options.memory.limit = 0;
    CHECK(!shortage_of(layout, options_of, ""));
  }
}

TEST_CASE("under ZeRO-2 a layout has room for less than the values and gradients of the model") {
  const Layout layout = parse_layout("dp16.z2", 0);
  PlanRequest request = request_for(layout, "ring");
  request.options.shape.layers = 48;
  request.options.batch.global = 16;
  request.options.batch.micro = 1;
  request.options.optimizer.kind = OptimizerKind::sgd;
  const std::int64_t most = most_bytes(request);
  REQUIRE(most < 2 * 4 * request.options.shape.parameters());
  request.options.memory.limit = most;
  CHECK(has_room(layout, [&](const Layout&) { return request.options; }));
}

TEST_CASE("if no layout has room, the error suggests more ranks and layouts for them") {
  TrainingOptions options = request_for({}, "ring").options;
  options.batch.micro = 1;
  const LayoutLimits one{options.shape, 1, options.batch.global, 1};
  const auto has_ranks = [](std::int64_t ranks) { return [ranks](const Layout& l) { return l.ranks() >= ranks; }; };
  CHECK_THAT(how_to_fit(Layout(), one, has_ranks(3)), says("start 4 ranks with as much memory each and try dp4.z3, "));
  CHECK_THAT(how_to_fit(Layout(), {options.shape, 2, 12, 1}, has_ranks(2)), says("try dp"));
  CHECK(how_to_fit(Layout(), one, has_ranks(1 << 20)) == "recompute activations, or take a smaller batch or model");
}

TEST_CASE("the memory of a long step is planned exactly, under every pipeline schedule") {
  for (const PipelineAlgorithm& row : all_pipeline_schedules()) {
    PlanRequest request = request_for(parse_layout(fmt::format("dp1.pp2.{}", row.name), 0), "ring");
    request.options.batch.global = 16;  // micro-batches, eight for each stage
    INFO(row.name);
    for (const std::int64_t stage : {0, 1}) {
      const RankPlan brief = plan_memory(request, stage);
      const RankPlan whole = plan_rank(request, fullest_rank(request.options, request.layout, stage));
      CHECK(brief.peak_bytes == whole.peak_bytes);
      CHECK((brief.peak == whole.peak && brief.held == whole.held));
      const auto calls = [](const RankPlan& plan) { return plan.axes.at("pp").entries[messages].calls; };
      CHECK((calls(brief) < calls(whole)) == (row.name != std::string("gpipe")));  // whether the step was shortened
    }
  }
}

// The vocabulary is chosen so that the head costs as much as a block. Then every stage has two layers of equal cost.
TEST_CASE("the planned bubble of equal stages equals the closed form") {
  for (const std::int64_t stages : {2, 4})
    for (const std::int64_t micro_batches : {4, 8})
      for (const char* schedule : {"gpipe", "1f1b"}) {
        const Layout layout = parse_layout(fmt::format("dp1.pp{}.{}", stages, schedule), 0);
        PlanRequest request = request_for(layout, "ring");
        request.options.shape = {ModelFamily::gpt2, 2 * stages - 1, 6, 6, 48, 192, 12, 12 * 48 + 11 + 12};
        request.options.batch.global = micro_batches;
        INFO(to_string(layout) << ", " << micro_batches << " micro-batches");
        CHECK(planned_bubble(request.options, layout) ==
              Approx(static_cast<double>(stages - 1) / static_cast<double>(micro_batches + stages - 1)).epsilon(1e-12));
      }
}

}  // namespace
}  // namespace chorale
