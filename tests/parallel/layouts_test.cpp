// In exact numerics, every combination of strategies is bit-identical to a one-rank run. Ranks are threads of one process,
// or processes that each backend connects.
#include "tests/parallel/layouts.hpp"

#include "tests/catch.hpp"

namespace chorale {
namespace {

void same_on_threads(const TrainingOptions& options, const Layout& layout, const test::Seen& expected) {
  INFO(to_string(layout));
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
          return difference(expected, test::train(options, std::move(mesh), memory));
        }) == "");
}

TEST_CASE("exact numerics give the same bits on every layout", "[threads]") {
  const test::Seen expected = test::train_alone(test::options_for("exact", {}));
  for (const Layout& layout : test::covering({1, 2, 3, 4, 6, 8}, test::layouts_of))
    same_on_threads(test::options_for("exact", layout), layout, expected);
}

TEST_CASE("exact numerics give the same bits of a model with experts on every layout", "[threads]") {
  const auto options_of = [](const Layout& layout, double capacity) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape = test::small_moe(capacity);
    return options;
  };
  const auto layouts_of = [](int world) { return all_layouts({test::small_moe(), world, 12, 1}); };
  std::map<double, test::Seen> expected;
  for (const double capacity : {0.0, 0.75}) expected[capacity] = test::train_alone(options_of({}, capacity));
  test::Sample third(3);
  for (const Layout& layout : test::covering({1, 2, 4}, layouts_of))
    for (const auto& [capacity, seen] : expected) {
      if (!third.takes()) continue;
      INFO("capacity " << capacity);
      same_on_threads(options_of(layout, capacity), layout, seen);
    }
}

// With one replica, each shard is a complete bucket. The code is the same as for several shards.
TEST_CASE("ZeRO with one replica trains the same model", "[threads]") {
  const test::Seen expected = test::train_alone(test::options_for("exact", {}));
  HostMemory host;
  for (const char* word : {"dp1.z1", "dp1.z2", "dp1.z3"}) {
    const Layout layout = parse_layout(word, 1);
    INFO(word);
    CHECK(difference(expected, test::train(test::options_for("exact", layout), Mesh(layout), host)) == "");
  }
  for (const char* parts : {"tp2", "tp2.sp", "pp2", "pp2.v2", "tp2.pp2"})
    for (const char* zero : {".z1", ".z2", ".z3"}) {
      const Layout layout = parse_layout(fmt::format("dp1.{}{}", parts, zero), 0);
      same_on_threads(test::options_for("exact", layout), layout, expected);
    }
}

// A change of a run's options. The code that handles the changed options depends on the layout, so each change is tested on
// several layouts.
struct Variation {
  const char* about;
  std::vector<const char*> layouts;
  void (*change)(TrainingOptions&);
};

const char* const usual[] = {"dp2.tp2.pp2.z1.sp", "dp3.tp2.z3.sp", "dp2.pp3.z2", "dp1.tp3.pp2"};

const Variation variations[] = {
    {"full recomputation", {usual, usual + 4}, [](TrainingOptions& o) { o.recompute = Recompute::full; }},
    {"selective recomputation", {usual, usual + 4}, [](TrainingOptions& o) { o.recompute = Recompute::selective; }},
    {"no dropout", {usual, usual + 4}, [](TrainingOptions& o) { o.shape.dropout = 0; }},
    {"separate table and head", {usual, usual + 4}, [](TrainingOptions& o) { o.shape.tied = false; }},
    {"llama, two queries per group",
     {"dp2.tp3.sp", "dp1.tp3.pp2", "dp2.tp3.z1", "dp2.pp2.z3"},
     [](TrainingOptions& o) {
       o.shape.family = ModelFamily::llama;
       o.shape.groups = 3;
       o.shape.tied = false;
     }},
    {"norms of queries and keys, heads wider together than the model",
     {"dp2.tp2.pp2.z1.sp", "dp3.tp2.z3.sp", "dp1.tp3.pp2", "dp2.tp3.z1", "dp2.tp2.z2", "dp1.tp3.pp2.zb-h1"},
     [](TrainingOptions& o) {
       o.shape.family = ModelFamily::llama;
       o.shape.groups = 3;
       o.shape.head = 10;
       o.shape.qk_norm = true;
     }},
    {"llama, tied",
     {"dp2.tp3.sp", "dp1.tp3.pp2.sp", "dp2.pp2.z2"},
     [](TrainingOptions& o) { o.shape.family = ModelFamily::llama; }},
    {"several micro-batches",
     {"dp2.tp2.z1", "dp3.z2", "dp2.tp2.z3.sp", "dp1.tp2.pp2", "dp6"},
     [](TrainingOptions& o) { o.batch.micro = 1; }},
    {"buckets of one tensor", {usual, usual + 4}, [](TrainingOptions& o) { o.replicas.bucket_bytes = 1; }},
    {"one bucket", {"dp2.tp2.z1.sp", "dp3", "dp2.pp2.z1"}, [](TrainingOptions& o) { o.replicas.bucket_bytes = 1 << 30; }},
    {"the naive reducer",
     {"dp2.tp2.pp2.sp", "dp3.tp2", "dp3.tp2.sp", "dp6"},
     [](TrainingOptions& o) { o.replicas.reducer = ReducerKind::naive; }},
    {"SGD", {usual, usual + 4}, [](TrainingOptions& o) { o.optimizer.kind = OptimizerKind::sgd; }},
    {"two threads per rank", {"dp2.tp2.z1.sp", "dp1.tp2.pp2"}, [](TrainingOptions& o) { o.kernels.threads = 2; }},
    {"other pipelines",
     {"dp2.pp2.gpipe", "dp1.tp2.pp2.sp.zb-h1", "dp2.pp2.z1.zb-h1", "dp2.pp2.z3.zb-h1", "dp1.pp4.gpipe", "dp1.pp2.v2",
      "dp1.tp2.pp2.v2.sp", "dp2.pp2.z2.v2", "dp2.pp2.z3.v2"},
     [](TrainingOptions&) {}},
    {"tensor ranks shard the activations that recomputation keeps",
     {"dp1.tp2", "dp2.tp3", "dp1.tp2.pp2", "dp1.tp2.sp", "dp2.tp2.z3"},
     [](TrainingOptions& o) {
       o.recompute = Recompute::full;
       o.memory.partition_activations = true;
     }},
    {"experts that recompute",
     {"dp1.tp2", "dp2.tp2.sp", "dp1.tp2.pp2.zb-h1", "dp2.pp2.z3", "dp1.tp2.pp2.sp"},
     [](TrainingOptions& o) {
       o.shape = test::small_moe();
       o.shape.family = ModelFamily::llama;
       o.shape.experts.score = ScoreFunction::sigmoid;
       o.shape.experts.groups = 3;
       o.shape.experts.chosen_groups = 2;
       o.recompute = Recompute::selective;
     }},
    {"experts, full recomputation, drops, several micro-batches",
     {"dp2", "dp2.tp2.sp", "dp2.tp2.z2", "dp1.pp2.zb-h1", "dp4.z3"},
     [](TrainingOptions& o) {
       o.shape = test::small_moe(0.75);
       o.shape.experts.before_choice = true;
       o.recompute = Recompute::full;
       o.batch.micro = 1;
     }},
    {"pipelines that recompute",
     {"dp2.pp2.z2.gpipe", "dp1.tp2.pp2.sp.zb-h1", "dp1.pp2.v2", "dp1.pp4"},
     [](TrainingOptions& o) { o.recompute = Recompute::full; }},
};

TEST_CASE("exact numerics give the same bits on every layout, whatever the other options are", "[threads]") {
  test::Sample half(2);
  for (const Variation& variation : variations) {
    INFO(variation.about);
    TrainingOptions options = test::options_for("exact", {});
    variation.change(options);
    const test::Seen expected = test::train_alone(options);
    for (const char* word : variation.layouts) {
      if (!half.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      options = test::options_for("exact", layout);
      variation.change(options);
      same_on_threads(options, layout, expected);
    }
  }
}

// The first loss scale causes an overflow. All ranks must skip the same steps and find the same scale.
TEST_CASE("all ranks skip the same overflowing steps", "[threads]") {
  for (const char* word : {"dp2.tp2.pp2.z1.sp", "dp3.tp2.z3", "dp1.tp3.pp2.sp", "dp4.z2", "dp2.pp2"}) {
    const Layout layout = parse_layout(word, 0);
    TrainingOptions options = test::options_for("fast", layout);
    options.compute = DType::f16;
    options.scaler = {.dynamic = true, .scale = 0x1p24, .growth_interval = 2, .hysteresis = 1, .patience = 1};
    INFO(word);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            test::Run run(options, std::move(mesh), memory);
            const auto before = fingerprint(run.training);
            run.steps(16);
            std::string skipped;
            std::int64_t taken = 0;
            for (const StepResult& step : run.seen.steps) {
              skipped += step.skipped ? "s" : ".";
              taken += !step.skipped;
            }
            if (!run.seen.steps.front().skipped || taken == 0) return "no step was skipped, or all were: " + skipped;
            if (run.training.optimizer().steps() != taken) return "the optimizer counted skipped steps";
            for (const std::string& other : run.training.mesh().world().exchange(skipped))
              if (other != skipped) return fmt::format("skipped steps: {} on this rank, {} on another", skipped, other);
            if (run.seen.prints.front() != before) return "a skipped step changed the state";
            return "";
          }) == "");
  }
}

// Trains on the layouts that covering.hpp chooses. In `make test`, each backend trains on a fifth of these layouts.
template <class LayoutsOf>
void same_on_processes(const ModelShape& shape, LayoutsOf&& layouts_of) {
  const auto options_of = [&](const Layout& layout) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape = shape;
    return options;
  };
  const test::Seen expected = test::train_alone(options_of({}));
  SystemClock clock;
  test::Sample fifth(5, test::world().size() > 4 ? 7 : 1);
  for (const Backend& backend : all_backends()) {
    if (!test::joins_all(backend)) continue;
    const Worlds worlds(open_world(backend.name, test::world(), clock));
    for (const Layout& layout : test::covering({test::world().size()}, layouts_of)) {
      if (!fifth.takes()) continue;
      INFO(to_string(layout) << " on " << backend.name);
      const TrainingOptions options = options_of(layout);
      REQUIRE_ALL(difference(expected, test::train(options, Mesh(layout, worlds, {}), worlds.memory())) == "");
    }
  }
}

TEST_CASE("exact numerics give the same bits if ranks are processes, on every backend", "[spmd][hosts][many]") {
  same_on_processes(test::small_shape(), test::layouts_of);
}

TEST_CASE("processes that divide the experts give the same bits, on every backend", "[spmd][hosts]") {
  same_on_processes(test::small_moe(0.75), test::expert_layouts_of);
}

// The first rank along ep gets all rows, and the remaining ranks get none.
TEST_CASE("processes give the same bits if all tokens choose the same experts", "[spmd]") {
  ModelShape shape = test::small_moe();
  shape.experts.count = 8;
  shape.experts.routing = ForcedRouting::one;
  same_on_processes(shape, [&](int world) {
    std::vector<Layout> layouts = all_layouts({shape, world, 12, 1});
    std::erase_if(layouts,
                  [](const Layout& l) { return l.expert_ranks() == 1 || l.zero > 0 || l.sequence || l.stages() > 1; });
    return layouts;
  });
}

}  // namespace
}  // namespace chorale
