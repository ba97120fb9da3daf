// Tests evaluations, which run only forward passes through a pipeline.
#include "parallel/step/run_pipeline.hpp"

#include <atomic>

#include "tests/parallel/layouts.hpp"
#include "tests/parallel/plan/plan_requests.hpp"

namespace chorale::test {

// In this test, the second stage waits for the first stage to read ahead. The second stage reads its first sample only when
// the first stage has stopped reading. The second stage reads every eighth sample only when the first stage has read the
// next sample. If the pipeline drained after eight micro-batches to vote on whether to continue, the second stage would wait
// forever.
TEST_CASE("an evaluation fills a pipeline once, and a fast stage does not fill the memory with results", "[threads]") {
  const bool may_be_cut = GENERATE(false, true);
  const Layout layout = parse_layout("dp1.pp2", 0);
  const TrainingOptions options = options_for("fast", layout);
  const std::int64_t result_bytes = options.shape.sequence * options.shape.width * std::int64_t{sizeof(float)};
  std::atomic<int> read_by[2] = {0, 0};
  CHECK(on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int stage = mesh.pipeline().rank();
          Run run(options, std::move(mesh), memory);
          std::int64_t activations = -1, others = 0;
          const ReadSamples read = [&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
            run.read(first, samples, rows);
            const Ledger& ledger = run.training.memory().ledger();
            if (activations < 0) activations = ledger.current(Category::activations);
            others += ledger.current(Category::activations) != activations;
            const int number = ++read_by[stage];
            for (int before = -1; stage == 1 && number == 1 && read_by[0] != before; run.clock.sleep(0.05))
              before = read_by[0];
            while (stage == 1 && number % 8 == 0 && number < 40 && read_by[0] <= number) run.clock.sleep(1e-3);
          };
          const std::function<bool()> never = [] { return false; };
          if (!run.training.evaluate_unless_cut(read, 40, may_be_cut ? never : nullptr)) return "it was cut short";
          const std::int64_t unread = stage == 0 ? static_cast<std::int64_t>(most_unread_results) : 0;
          if (read_by[stage] != 40) return fmt::format("{} samples were read", read_by[stage].load());
          if (others > 0) return "the bytes of activations depend on the other stage";
          const std::int64_t most = run.training.memory().ledger().peak(Category::comm);
          return most <= unread * result_bytes
                     ? ""
                     : fmt::format("{} bytes are on their way, but {} results take {}", most, unread, unread * result_bytes);
        }) == "");
}

// The second stage begins only when the first stage has begun its last micro-batch. The results are too large for the
// staging area of a flag page (backends/mapped/flag_page.hpp). So the send of a result completes only when the second stage
// has read the result.
TEST_CASE("if a stage is slow, as many results are on their way as planned", "[threads]") {
  const Layout layout = parse_layout("dp1.pp2.gpipe", 0);
  TrainingOptions options = options_for("fast", layout);
  options.batch.micro = 3;
  options.shape.sequence = 64;
  std::atomic<std::int64_t> samples_read = 0;
  CHECK(on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int stage = mesh.pipeline().rank();
          const RankPlan plan = plan_rank({.options = options, .layout = layout}, stage);
          Run run(options, std::move(mesh), memory);
          const ReadSamples read = [&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
            run.read(first, samples, rows);
            if (stage == 0) samples_read += samples;
            while (stage == 1 && samples_read < options.batch.global) run.clock.sleep(1e-3);
          };
          run.training.step(read);
          const std::int64_t made = run.training.memory().ledger().peak(Category::comm);
          const std::int64_t planned = plan.peak[static_cast<std::size_t>(Category::comm)];
          const std::int64_t results = options.batch.global * options.shape.sequence * options.shape.width *
                                       static_cast<std::int64_t>(size_of(options.compute));
          if (planned != results) return fmt::format("all results have {} bytes, {} are planned", results, planned);
          if (stage == 0 && made != planned) return fmt::format("planned {}, measured {}", planned, made);
          return difference_of_memory(plan, observed(run.training));
        }) == "");
}

TEST_CASE("an evaluation keeps the stages of every placement busy") {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    for (const std::int64_t stages : {2, 3, 4, 8})
      for (const std::int64_t chunks : {1, 2, 3, 4}) {
        const PipelineShape shape{stages, 256, chunks, row.placement};
        if (!fits(row, {stages, 24, chunks, row.placement})) continue;
        INFO(row.name << ", " << stages << " stages of " << chunks << " chunks");
        CHECK(simulate(forward_only(shape), equal_parts(shape)).bubble() < 0.03);
      }
}

// The last stage votes to end the evaluation. All stages skip the same micro-batches, so no stage waits for a message that
// is never sent.
TEST_CASE("an evaluation that one rank wants to end is cut short on all ranks, and leaves nothing behind", "[threads]") {
  for (const char* word : {"dp1.pp3", "dp2.pp2.z3", "dp1.pp2.v2.interleaved", "dp1.pp2.v-min"}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word);
    CHECK(on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            Run run(options_for("exact", layout), std::move(mesh), memory);
            const double whole = run.training.evaluate(run.read, 48);
            const bool is_last = run.training.mesh().world().rank() + 1 == layout.ranks();
            for (const int last : {1, 2, 3}) {
              int asked = 0;
              if (run.training.evaluate_unless_cut(run.read, 48, [&] { return ++asked == last && is_last; }))
                return fmt::format("vote {} was ignored", last);
              if (asked != last) return fmt::format("a rank was asked {} times, not {}", asked, last);
            }
            return run.training.evaluate(run.read, 48) == whole ? "" : "the loss differs after evaluations were cut short";
          }) == "");
  }
}

}  // namespace chorale::test
