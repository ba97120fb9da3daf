// Mistakes of the bug zoo that do not fit into a row of its tables.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/parallel/zoo/detectors.hpp"

namespace chorale::zoo {
namespace {

// The test shows why gradients and their norms are compared, not only losses.
TEST_CASE("with Adam, a gradient that is too large shows in the norm but not in the loss", "[threads]") {
  CHECK(test::on_thread_mesh(parse_layout("dp3", 0), [](Mesh mesh, Memory& memory) -> std::string {
          HostMemory host;
          TrainingOptions options = options_in(parse_layout("dp3", 0), {});
          options.optimizer.clip = 0;
          Run right(options, Mesh(), host), wrong(options, std::move(mesh), memory);
          mistakes_in_gradients().front().make(wrong);  // gradients are three times too large
          right.steps(3);
          wrong.steps(3);
          for (std::size_t i = 0; i < 3; ++i) {
            const auto &a = right.seen.steps[i], &b = wrong.seen.steps[i];
            if (b.loss != Approx(a.loss).epsilon(1e-4))
              return fmt::format("the loss shows the mistake: {} and {}", a.loss, b.loss);
            if (b.gradient_norm != Approx(3 * a.gradient_norm).epsilon(1e-2)) return "the norm does not show the mistake";
          }
          return "";
        }) == "");
}

// f16 gradients overflow on only one rank. The other ranks do not see these gradients.
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

// If an account used the number of all ranks instead of the group's size, its byte counts would be wrong by a factor. The
// correct counts are the bytes of a ring on the group's ranks.
TEST_CASE("an axis counts the bytes that a ring of its own ranks sends, not a ring of the world", "[threads]") {
  for (const char* word : {"dp4.tp2", "dp2.tp2", "dp2.tp2.z1", "dp3.pp2.z1", "dp2.tp2.pp2"}) {
    INFO(word);
    const Layout layout = parse_layout(word, 0);
    const int ranks = static_cast<int>(layout.ranks());
    ThreadWorld world(ranks);
    CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
            SystemClock clock;
            const Worlds worlds(open_world(world.transport(me.rank()), clock));
            Run run(options_in(layout, {}), Mesh(layout, worlds, {{"dp", "ring"}}), worlds.memory());
            Axis& axis = run.training.mesh().data();
            axis.clear_account();
            run.training.step(run.read);
            std::int64_t gradients = 0, values = 0;
            for (const Bucket& bucket : run.training.buckets().all()) {
              gradients += bucket.count * 8;
              values += bucket.count * 4;
            }
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
}  // namespace chorale::zoo
