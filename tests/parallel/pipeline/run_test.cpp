// An evaluation runs only forward passes through a pipeline.
#include "parallel/pipeline/run.hpp"

#include <atomic>

#include "tests/parallel/layouts.hpp"

namespace chorale::test {

// On the second stage, the reading of a sample can wait for the first stage. It waits at the first sample, until the first
// stage reads no more; and at the eighth, until the first stage has read the ninth. If a pipeline with two parts drained
// after eight micro-batches, the second wait would last forever.
TEST_CASE("an evaluation fills a pipeline once, and a fast stage does not fill the memory with results", "[threads]") {
  const Layout layout = parse_layout("dp1.pp2", 0);
  const TrainingOptions options = options_for("fast", layout);
  const std::int64_t result_bytes = options.shape.sequence * options.shape.width * std::int64_t{sizeof(float)};
  std::atomic<int> read_by[2] = {0, 0};
  CHECK(on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int stage = mesh.pipeline().rank();
          Run run(options, std::move(mesh), memory);
          std::int64_t least = -1, most = 0;
          const ReadSamples read = [&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
            run.read(first, samples, rows);
            const std::int64_t held = run.training.ledger().current(Category::activations);
            if (least < 0) least = held;
            most = std::max(most, held);
            const int number = ++read_by[stage];
            for (int before = -1; stage == 1 && number == 1 && read_by[0] != before; run.clock.sleep(0.05))
              before = read_by[0];
            while (stage == 1 && number == 8 && read_by[0] < 9) run.clock.sleep(1e-3);
          };
          run.training.evaluate(read, 40);
          const std::int64_t unread = stage == 0 ? static_cast<std::int64_t>(most_unread_results) : 0;
          if (read_by[stage] != 40) return fmt::format("{} samples were read", read_by[stage].load());
          return most - least <= unread * result_bytes ? ""
                                                       : fmt::format("{} bytes of activations, but {} results take {}",
                                                                     most - least, unread, unread * result_bytes);
        }) == "");
}

}  // namespace chorale::test
