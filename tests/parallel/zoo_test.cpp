// The bug zoo: mistakes that other projects have shipped. Each mistake is put into a training run through the interfaces
// that strategies use, and the named comparison must catch it. A mistake that passed here would also pass the tests of
// layouts.
//
// One known mistake is left out: label smoothing over a shard of the vocabulary. Chorale has no label smoothing.
#include "tests/catch.hpp"
#include "tests/parallel/mistakes.hpp"

namespace chorale {
namespace {

using namespace zoo;
using test::Run;

struct Mistake {
  const char* about;
  std::vector<const char*> layouts;
  const char* caught;  // the step and the quantity that reveal it
  void (*make)(Run&);
};

const Mistake mistakes[] = {
    {"a gradient N times too large",
     {"dp3", "dp3.z1", "dp3.z2", "dp3.z3", "dp1.cp2", "dp1.cp3.z2"},
     "step 1: norm",
     reduce_by<TooLarge>},
    {"a gradient m times too large under a pipeline", {"dp1.pp3", "dp2.pp2.z2"}, "step 1: norm", reduce_by<TooLarge>},
    {"each replica takes the mean over its own tokens",
     {"dp2", "dp3", "dp3.z1", "dp2.tp2"},
     "step 1: norm",
     reduce_by<LocalMeans>},
    {"each context rank takes the mean over its own tokens",
     {"dp1.cp2", "dp1.cp3.z1", "dp2.cp2", "dp1.tp2.cp2"},
     "step 1: norm",
     reduce_by<LocalMeans>},
    {"each context rank attends to its own keys only",
     {"dp1.cp2", "dp2.cp2.z1", "dp1.pp2.cp2"},
     "step 1: loss",
     [](Run& run) { run.training.attention() = std::make_unique<AttentionScheme>(); }},
    {"each context rank counts positions from 0",
     {"dp1.cp2", "dp1.cp3", "dp2.cp2.z3"},
     "step 1: loss",
     [](Run& run) { run.training.boundary() = std::make_unique<FromTheStart>(); }},
    {"one shard or stage skips a step, the others do not",
     {"dp2.z1", "dp2.z3", "dp1.tp2", "dp1.pp2"},
     "differs",
     reduce_by<SkipsAlone>},
    {"one replica skips a step, the others do not",
     {"dp2", "dp3"},
     "step 1: block.0.attention.norm.gain@dp1 differs",
     reduce_by<SkipsAlone>},
    {"each shard adds the bias", {"dp1.tp2", "dp2.tp3"}, "step 2: loss", add_bias_on_each<TensorParallel>},
    {"each shard adds the bias to its rows",
     {"dp1.tp2.sp", "dp1.tp3.sp"},
     "step 2: loss",
     add_bias_on_each<SequenceParallel>},
    {"the norm counts the tied table twice",
     {"dp1.pp2", "dp2.pp2.z1", "dp2.pp3.z3"},
     "step 1: norm",
     reduce_by<CountedTwice>},
    {"the ranks' gradients of gains and shifts are not summed under sequence parallelism",
     {"dp1.tp2.sp", "dp2.tp2.z1.sp", "dp2.tp3.z3.sp", "dp1.tp2.pp2.sp"},
     "step 1: norm",
     [](Run& run) {
       for (Bucket& bucket : run.training.buckets().all()) bucket.sums.clear();
     }},
    {"the naive reducer does not sum the ranks' gradients of gains and shifts under sequence parallelism",
     {"dp1.tp2.sp", "dp2.tp3.sp"},
     "step 1: norm",
     [](Run& run) {
       run.training.reducer() = naive_reducer(run.training.buckets());
       for (Bucket& bucket : run.training.buckets().all()) bucket.sums.clear();
     }},
    {"the two stages' gradients of a tied table are not summed",
     {"dp1.pp2", "dp2.pp2.z1", "dp2.pp2.z2", "dp2.pp2.z3"},
     "step 1: norm",
     [](Run& run) {
       for (Bucket& bucket : run.training.buckets().all()) bucket.stages = nullptr;
     }},
    {"only the last micro-batch's gradient is reduced", {"dp2", "dp2.tp2", "dp2.pp2"}, "step 1: norm", reduce_by<LastAlone>},
    {"updated shards are not gathered",
     {"dp2.z1", "dp3.z2", "dp2.tp2.z1", "dp1.cp2.z1"},
     "step 2: loss",
     reduce_by<Unpublished>},
    {"each replica draws different masks",
     {"dp2", "dp3.z3"},
     "step 1: loss",
     [](Run& run) {
       run.training.boundary() = std::make_unique<OwnSeed<ShardBoundary>>(run.training.mesh().data().rank());
     }},
    {"all replicas draw the same masks",
     {"dp2", "dp3.z1"},
     "step 1: loss",
     [](Run& run) { run.training.boundary() = std::make_unique<LocalPlaces>(); }},
    {"each shard draws different masks",
     {"dp1.tp2", "dp1.tp3"},
     "step 1: loss",
     [](Run& run) {
       Axis& axis = run.training.mesh().tensor();
       run.training.boundary() = std::make_unique<OwnSeed<TensorParallel>>(axis.rank(), axis);
     }},
    {"shards of the residual stream draw the same masks",
     {"dp1.tp2.sp", "dp2.tp3.sp"},
     "step 1: loss",
     [](Run& run) { run.training.boundary() = std::make_unique<LocalRows>(run.training.mesh().tensor()); }},
    {"all replicas read the same samples",
     {"dp2", "dp3.z1", "dp2.pp2"},
     "step 1: loss",
     [](Run& run) {
       run.read = [read = run.read, share = run.training.options().global_batch / run.training.mesh().data().size()](
                      std::int64_t first, auto... rest) { read(first / 12 * 12 + first % share, rest...); };
     }},
    {"a resumed run repeats a batch", {"dp1", "dp2.pp2"}, "step 2: loss", [](Run& run) { resume_later(run, -12); }},
    {"a resumed run skips a sample", {"dp1", "dp2.tp2"}, "step 2: loss", [](Run& run) { resume_later(run, 1); }},
    {"a resumed run restarts at step 0",
     {"dp1", "dp2.z1"},
     "step 2: loss",
     [](Run& run) {
       run.steps(1);
       run.training.resume_at(0, run.training.samples());
     }},
};

TrainingOptions options_in(const char* word) {
  const Layout layout = parse_layout(word, 0);
  TrainingOptions options = test::options_for("exact", layout);
  options.micro_batch = 1;
  return options;
}

std::string trouble_of(const char* word, const test::Seen& expected, void (*make)(Run&)) {
  return test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) {
    Run run(options_in(word), std::move(mesh), memory);
    make(run);
    run.steps(static_cast<int>(expected.steps.size() - run.seen.steps.size()));
    return difference(expected, run.seen);
  });
}

TEST_CASE("comparing a run with a one-rank run catches mistakes that other projects have shipped", "[threads]") {
  HostMemory host;
  const test::Seen expected = Run(test::options_for("exact", {}), Mesh(), host).steps(3).seen;
  for (const Mistake& mistake : mistakes)
    for (const char* word : mistake.layouts) {
      INFO(mistake.about << " in " << word);
      CHECK(trouble_of(word, expected, [](Run&) {}) == "");
      CHECK_THAT(trouble_of(word, expected, mistake.make), Catch::Contains(mistake.caught));
    }
}

// This test shows why gradients and their norms are compared, not only losses.
TEST_CASE("with Adam, a gradient that is too large shows in the norm but not in the loss", "[threads]") {
  CHECK(test::on_thread_mesh(parse_layout("dp3", 0), [](Mesh mesh, Memory& memory) -> std::string {
          HostMemory host;
          TrainingOptions options = options_in("dp3");
          options.clip = 0;
          Run right(options, Mesh(), host), wrong(options, std::move(mesh), memory);
          reduce_by<TooLarge>(wrong);
          right.steps(3), wrong.steps(3);
          for (std::size_t i = 0; i < 3; ++i) {
            const auto &a = right.seen.steps[i], &b = wrong.seen.steps[i];
            if (b.loss != Approx(a.loss).epsilon(1e-4))
              return fmt::format("the loss shows the mistake: {} and {}", a.loss, b.loss);
            if (b.gradient_norm != Approx(3 * a.gradient_norm).epsilon(1e-2)) return "the norm does not show the mistake";
          }
          return "";
        }) == "");
}

// The reported norm is right, but each rank clips its gradient by a different norm, for example that of its own shard.
TEST_CASE("a run in which each rank clips its gradient by a different norm is detected", "[threads]") {
  HostMemory host;
  for (const char* word : {"dp1.tp2", "dp1.pp2", "dp2.z1"}) {
    INFO(word);
    for (const bool mistaken : {false, true}) {
      TrainingOptions options = options_in(word);
      options.clip = 0.1;
      const test::Seen expected = Run(options, Mesh(), host).steps(2).seen;
      CHECK(expected.steps[0].gradient_norm > options.clip);
      const std::string trouble = test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) {
        TrainingOptions own = options;
        if (mistaken) own.clip *= 1 + mesh.world().rank();
        Run run(own, std::move(mesh), memory);
        return difference(expected, run.steps(2).seen);
      });
      if (mistaken)
        CHECK_THAT(trouble, Catch::Contains("step 1: ") && Catch::Contains("differs"));
      else
        CHECK(trouble == "");
    }
  }
}

// f16 gradients overflow on one rank only. The other ranks do not see these gradients.
TEST_CASE("all ranks skip a step in which one rank overflows", "[threads]") {
  struct Overflows : Before {
    using Before::Before;
    void finish() override {
      inner->finish();
      if (run.training.steps() != 1 || run.training.mesh().world().rank() != 1) return;
      for (const Bucket& bucket : run.training.buckets().all())
        for (float& g : bucket.gradient_shard.values<float>()) g = INFINITY;
    }
  };
  for (const char* word : {"dp2", "dp1.tp2", "dp1.pp2", "dp1.tp2.pp2"}) {
    INFO(word);
    TrainingOptions options = test::options_for("fast", parse_layout(word, 0));
    options.compute = DType::f16;
    options.scaler = {.dynamic = true, .scale = 64, .patience = 1};
    CHECK(test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) -> std::string {
            Run run(options, std::move(mesh), memory);
            reduce_by<Overflows>(run);
            run.steps(3);
            for (int i = 0; i < 3; ++i)
              if (run.seen.steps[static_cast<std::size_t>(i)].skipped != (i == 1))
                return fmt::format("step {} is {}skipped", i + 1, i == 1 ? "not " : "");
            return run.training.scaler().scale == 32 ? "" : "the scale did not fall";
          }) == "");
  }
}

// An account that computes bytes with the size of the world instead of the group is wrong by a factor. The bytes must be
// those of a ring on the group's ranks.
TEST_CASE("an axis counts the bytes that a ring of its own ranks sends, not a ring of the world", "[threads]") {
  for (const char* word : {"dp4.tp2", "dp2.tp2", "dp2.tp2.z1", "dp3.pp2.z1", "dp2.tp2.pp2"}) {
    INFO(word);
    const Layout layout = parse_layout(word, 0);
    const int ranks = static_cast<int>(layout.ranks());
    ThreadWorld world(ranks);
    CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
            SystemClock clock;
            const Worlds worlds(open_world(world.transport(me.rank()), clock));
            Run run(options_in(word), Mesh(layout, worlds, {{"dp", "ring"}}), worlds.memory());
            Axis& axis = run.training.mesh().data();
            axis.clear_account();
            run.training.step(run.read);
            std::int64_t gradients = 0, values = 0;
            for (const Bucket& bucket : run.training.buckets().all())
              gradients += bucket.count * 8, values += bucket.count * 4;
            const auto sent = [&](Collective what) { return axis.account().entries[static_cast<std::size_t>(what)].bytes; };
            const auto ring = [&](std::int64_t bytes, std::int64_t n) { return bytes / n * (n - 1); };
            const std::int64_t n = layout.replicas();
            const bool whole = layout.zero == 0;
            const auto expect = [&](Collective what, std::int64_t bytes) {
              me.check(sent(what) == bytes, "{}: {} bytes, expected {}", name_of(what), sent(what), bytes);
              me.check(bytes == 0 || bytes != ring(gradients, ranks) * (whole ? 2 : 1),
                       "this layout cannot distinguish the group's size from the world's");
            };
            expect(Collective::all_reduce, whole ? 2 * ring(gradients, n) : 0);
            expect(Collective::reduce_scatter, whole ? 0 : ring(gradients, n));
            expect(Collective::all_gather, whole ? 0 : ring(values, n));
          }) == "");
  }
}

}  // namespace
}  // namespace chorale
