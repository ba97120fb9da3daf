// Tests training on one rank. Repeated and resumed runs are bit-identical. With exact numerics, runs with different
// micro-batch sizes are bit-identical, too.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/parallel/small_training.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

void same_losses(const std::vector<StepResult>& a, const std::vector<StepResult>& b) {
  REQUIRE(a.size() == b.size());
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };  // f16 can overflow
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK((same(a[i].loss, b[i].loss) && same(a[i].gradient_norm, b[i].gradient_norm)));
}

}  // namespace

TEST_CASE("two runs with the same seed have the same bits, and runs with different seeds differ") {
  for (const auto& [numerics, compute] : modes) {
    SmallRun one(small(numerics, compute)), two(small(numerics, compute));
    same_losses(one.steps(5), two.steps(5));
    CHECK(one.state() == two.state());
    TrainingOptions other = small(numerics, compute);
    other.seed = 99;
    SmallRun three(other);
    CHECK(three.steps(1)[0].loss != one.steps(1)[0].loss);
  }
}

TEST_CASE("a run that stops and resumes has the same bits as an uninterrupted run") {
  for (const auto& [numerics, compute] : modes)
    for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd}) {
      TrainingOptions options = small(numerics, compute);
      options.optimizer.kind = optimizer;
      if (compute == DType::f16)
        options.scaler = {.dynamic = true, .scale = 0x1p30, .growth_interval = 4};  // overflows at first, then recovers
      const TemporaryFolder folder;
      Log log({.level = "off"});
      SmallRun whole(options), first(options), second(options);
      const auto expected = whole.steps(20);
      first.steps(10);
      save_checkpoint(folder.path(), metadata_of(first.training, ""), state_of(first.training));
      resume(second.training, Checkpoint::open(folder.path(), log));
      const auto after = second.steps(10);
      same_losses(after, {expected.begin() + 10, expected.end()});
      CHECK(second.state() == whole.state());
      CHECK(second.training.optimizer().steps() == whole.training.optimizer().steps());
    }
}

TEST_CASE("exact numerics give the same bits with any micro-batch size, on one thread or two") {
  SmallRun whole(small("exact"));
  const auto expected = whole.steps(4);
  for (const std::int64_t micro : {1, 2, 4, 8})
    for (const int threads : {1, 2}) {
      TrainingOptions options = small("exact");
      options.batch.micro = micro;
      options.kernels.threads = threads;
      options.recompute = micro == 2 ? Recompute::full : micro == 4 ? Recompute::selective : Recompute::none;
      SmallRun run(options);
      same_losses(run.steps(4), expected);
      INFO("micro-batch " << micro << ", " << threads << " threads");
      CHECK(run.state() == whole.state());
    }
}

TEST_CASE("fast numerics give nearly the same result for every micro-batch size") {
  SmallRun whole(small());
  const auto expected = whole.steps(4);
  TrainingOptions options = small();
  options.batch.micro = 2;
  SmallRun cut(options);
  const auto seen = cut.steps(4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(seen[i].loss == Approx(expected[i].loss).epsilon(1e-5));
  CHECK(seen[0].gradient_norm == Approx(expected[0].gradient_norm).epsilon(1e-5));
}

TEST_CASE("a run that resumes a checkpoint of another compute type uses its own loss scale") {
  const TemporaryFolder folder;
  Log log({.level = "off"});
  TrainingOptions half = small("fast", DType::f16);
  half.scaler = {.dynamic = true, .scale = 1024};
  SmallRun plain(small()), scaled(half);
  save_checkpoint(folder.path(), metadata_of(plain.training, ""), state_of(plain.training));
  resume(scaled.training, Checkpoint::open(folder.path(), log));
  CHECK(scaled.training.scaler().scale == 1024);
  scaled.steps(1);
  save_checkpoint(folder.path(), metadata_of(scaled.training, ""), state_of(scaled.training));
  resume(plain.training, Checkpoint::open(folder.path(), log));
  CHECK(plain.training.scaler().scale == 1);
}

}  // namespace chorale::test
