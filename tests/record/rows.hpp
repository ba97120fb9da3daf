// The rows that the tests of records write. The values follow simple formulas, so the tests in Python can recompute them.
#pragma once
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "src/record/recorder.hpp"

namespace chorale::test {

struct TrainRow {
  std::int64_t step;
  double time;
  float loss;
  std::uint8_t skipped;
  static auto columns() {
    return std::tuple{column("step", &TrainRow::step, "1", "training step"),
                      column("time", &TrainRow::time, "s", "since the start"),
                      column("loss", &TrainRow::loss, "1", "mean loss in nats"),
                      column("skipped", &TrainRow::skipped, "", "the step was not taken", {"no", "yes"})};
  }
};

struct PhaseRow {
  std::int64_t step;
  std::vector<float> phase_time;  // [rank][phase]
  static auto columns() {
    return std::tuple{column("step", &PhaseRow::step, "1", "training step"),
                      column("phase_time", &PhaseRow::phase_time, "s", "time in each phase", {}, {"rank", "phase"})};
  }
};

struct BenchRow {
  std::uint8_t op;
  std::int64_t bytes;
  std::int32_t ranks;
  double time;
  std::string note = "";
  static auto columns() {
    return std::tuple{column("op", &BenchRow::op, "", "operation", {"all_reduce", "broadcast", "all_gather"}),
                      column("bytes", &BenchRow::bytes, "byte", "of the whole vector"),
                      column("ranks", &BenchRow::ranks, "1", "in the group"),
                      column("time", &BenchRow::time, "s", "of one call"), text_column("note", &BenchRow::note, "in words")};
  }
};

inline float loss_at(std::int64_t step) { return 5.0f / static_cast<float>(step + 1); }
inline TrainRow train_row(std::int64_t step) {
  return {step, 0.25 * static_cast<double>(step), loss_at(step), static_cast<std::uint8_t>(step % 7 == 3)};
}

// Writes a record with one table of every kind.
void write_sample_record(const std::filesystem::path& folder);

}  // namespace chorale::test
