// Two programs for the tests in Python. One program writes a record with every kind of table. The other program writes rows
// until it is killed.
#include <cstdio>

#include "src/base/signals.hpp"
#include "tests/record/rows.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

void write_sample_record(const std::filesystem::path& folder) {
  SystemClock clock;
  Recorder recorder(folder, {{"run_id", "sample"}, {"user", "somebody"}}, clock);
  recorder.number("jobsize", 3);
  recorder.text("config", "toml", "ranks = 3\n");
  recorder.dimension({.name = "rank", .size = 3});
  recorder.texts("ranks", "host", "rank", {"north", "søuth", ""});
  recorder.numbers("ranks", "cpu", {"rank"}, std::vector<std::int64_t>{0, 1, -1}, "1", "core");
  recorder.numbers("ranks", "clock_offset", {"rank"}, std::vector<double>{0, 1e-6, -1e-6}, "s", "to rank 0's clock");

  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step", .live = true});
  Table& phases = recorder.table<PhaseRow>(
      {.group = "phases", .rows = "step", .dimensions = {{.name = "phase", .labels = {"forward", "backward"}}}});
  Table& bench = recorder.table<BenchRow>({.group = "bench", .rows = "sample"});
  recorder.table<BenchRow>({.group = "empty", .rows = "sample"});
  for (std::int64_t step = 0; step < 120; ++step) {
    recorder.append(train, train_row(step));
    if (recorder.due(step)) recorder.flush();
  }
  for (int step = 0; step < 4; ++step) {
    PhaseRow row{step, {}};
    for (int rank = 0; rank < 3; ++rank)
      for (int phase = 0; phase < 2; ++phase)
        row.phase_time.push_back(static_cast<float>(step) + 0.1f * static_cast<float>(rank) +
                                 0.01f * static_cast<float>(phase));
    recorder.append(phases, row);
  }
  for (std::uint8_t op = 0; op < 3; ++op)
    recorder.append(bench, BenchRow{op, 8 << op, 3, 1e-6 * op, op == 1 ? "" : "Größe " + std::string(op, 'x')});
  recorder.finish("ok");
}

TEST_CASE("write a sample record into TEST_FOLDER", "[.sample-record]") { write_sample_record(needed("TEST_FOLDER")); }

// Prints the number of acknowledged (flushed) rows on stdout. Acknowledged rows must never be lost. If a signal asks the
// program to stop, it ends cleanly.
TEST_CASE("record into TEST_FOLDER until killed", "[.endless-record]") {
  Signals signals;
  SystemClock clock;
  Recorder recorder(needed("TEST_FOLDER"), {}, clock);
  recorder.dimension({.name = "rank", .size = 3});
  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step", .live = true});
  Table& phases = recorder.table<PhaseRow>(
      {.group = "phases", .rows = "step", .dimensions = {{.name = "phase", .labels = {"forward", "backward"}}}});
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::int64_t step = 0; !signals.pending(); ++step) {
    recorder.append(train, train_row(step));
    recorder.append(phases, PhaseRow{step, std::vector<float>(6, static_cast<float>(step))});
    if (step % 17 != 0) continue;
    recorder.flush();
    std::printf("acknowledged %lld\n", static_cast<long long>(step + 1));
    std::fflush(stdout);
  }
  recorder.finish("stopped");
}

}  // namespace chorale::test
