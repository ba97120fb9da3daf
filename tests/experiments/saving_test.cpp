// Tests the check of the disk space: before its first step, a run checks whether the disk has enough space for the
// checkpoints.
#include "experiments/train/saving.hpp"

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::train {
namespace {

Saving every_step() {
  Saving saving;
  Options options("train");
  saving.declare(options);
  options.set({"save-interval", "1", "test", Source::command_line});
  return saving;
}

// A model whose weights and moments need about `bytes` bytes.
TrainingOptions with_state(double bytes) {
  TrainingOptions options{.shape = test::small_shape()};
  options.shape.dropout = 0;
  options.shape.sequence =
      static_cast<std::int64_t>(bytes / 12 / static_cast<double>(options.shape.width));  // rows of the position table
  return options;
}

}  // namespace

TEST_CASE("a run without room for a checkpoint is refused, one without room for three is warned") {
  const test::TemporaryFolder folder;
  const std::filesystem::path not_there = folder.path() / "a/b";
  const auto free = static_cast<double>(std::filesystem::space(folder.path()).available);
  if (free == 0 || free > 0x1p60) return;  // some file systems do not report their free space
  const Saving saving = every_step();
  CHECK_THAT(test::refused([&] { saving.check(not_there, with_state(1.5 * free), 10); }),
             says("there is no room for a checkpoint") && says("--run-dir") && says(not_there.string()));
  CHECK_THAT(saving.check(not_there, with_state(0.7 * free), 10), says("3 checkpoints of about"));
  CHECK(saving.check(not_there, with_state(0.7 * free), 1) == "");
  CHECK(saving.check(not_there, with_state(0.2 * free), 10) == "");
}

}  // namespace chorale::train
