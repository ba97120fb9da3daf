// Tests that a training step computes the correct gradient, clipping, decay, dropout and loss scale, and that a model
// learns.
#include "parallel/step/training.hpp"

#include <cmath>
#include <map>

#include "tests/catch.hpp"
#include "tests/parallel/small_training.hpp"

namespace chorale::test {

TEST_CASE("a small model learns with fast numerics in f32, bf16 and f16, and with exact numerics in f32") {
  for (const auto& [numerics, compute] : modes) {
    TrainingOptions options = small(numerics, compute);
    options.shape.dropout = 0;
    if (compute == DType::f16) options.scaler = {.dynamic = true, .scale = 65536};
    SmallRun run(options);
    const auto steps = run.steps(60);
    INFO(numerics << " " << name_of(compute));
    CHECK(steps.front().loss == Approx(std::log(96.0)).epsilon(0.02));
    CHECK(steps.front().bubble >= 0);
    CHECK(steps.back().loss < 0.9 * steps.front().loss);
    const double held_out = run.training.evaluate(run.read(), 16);
    CHECK(held_out == Approx(steps.back().loss).epsilon(0.1));
  }
}

TEST_CASE("f16 skips the steps that overflow, and finds its scale") {
  TrainingOptions options = small("fast", DType::f16);
  options.scaler = {.dynamic = true, .scale = 0x1p30, .growth_interval = 1000, .hysteresis = 1, .patience = 1};
  SmallRun run(options);
  const auto before = run.state();
  const StepResult first = run.steps(1)[0];
  CHECK(first.skipped);
  CHECK(std::isfinite(first.loss));
  CHECK(run.state() == before);
  const auto later = run.steps(30);
  CHECK_FALSE(later.back().skipped);
  CHECK(later.back().loss_scale < 0x1p30);
  CHECK(run.training.optimizer().steps() < 31);
}

TEST_CASE("dropout differs at every step, and evaluations have none") {
  TrainingOptions options = small();
  options.optimizer.rate = {.decay = RateDecay::constant, .peak = 0, .minimum = 0};
  SmallRun dropping(options);
  options.shape.dropout = 0;
  SmallRun whole(options);
  const ReadSamples same = [&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    whole.read()(first % 8, samples, rows);
  };
  const double first = dropping.training.step(same).loss, second = dropping.training.step(same).loss;
  CHECK(first != second);
  CHECK(whole.training.step(same).loss == whole.training.step(same).loss);
  CHECK(dropping.training.evaluate(same, 8) == whole.training.step(same).loss);
  CHECK(first != whole.training.step(same).loss);
}

TEST_CASE("an evaluation that is cut short has no loss, and leaves nothing behind") {
  TrainingOptions options = small();
  options.batch.micro = 2;
  SmallRun run(options);
  const double whole = run.training.evaluate(run.read(), 16);
  int asked = 0;
  CHECK_FALSE(run.training.evaluate_unless_cut(run.read(), 16, [&] { return ++asked == 3; }));
  CHECK(asked == 3);
  CHECK(run.training.evaluate_unless_cut(run.read(), 16, [&] { return ++asked == 0; }) == whole);
  CHECK(asked == 10);  // between its eight micro-batches
}

TEST_CASE("an evaluation of no samples has nothing of the step before it") {
  for (const auto& [numerics, compute] : modes) {
    SmallRun run(small(numerics, compute));
    run.steps(1);
    CHECK(run.training.evaluate(run.read(), 0) == 0);
  }
}

TEST_CASE("weight decay applies only to matrices") {
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    TrainingOptions options = small();
    options.optimizer.kind = optimizer;
    options.optimizer.decay = 0.5;
    options.optimizer.rate = {.decay = RateDecay::constant, .peak = 0.1};
    SmallRun run(options);
    const auto weights = [&] {
      std::map<std::string, std::vector<float>> all;
      for (const ParameterPointer& p : run.training.parameters()) {
        const auto values = p->value.values<float>();
        if (p->shape.size() == 1) std::fill(values.begin(), values.end(), 0.5f);
        all[p->name].assign(values.begin(), values.end());
      }
      return all;
    };
    const auto before = weights();
    run.training.step([&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
      run.read()(first, samples, rows);
      std::ranges::fill(rows.targets, -1);  // all gradients are zero
    });
    for (const ParameterPointer& p : run.training.parameters()) {
      INFO(name_of(optimizer) << " " << p->name);
      CHECK(p->value.values<float>()[3] == Approx(before.at(p->name)[3] * (p->shape.size() == 2 ? 0.95 : 1)));
    }
  }
}

// To first order, a step of plain SGD lowers the mean loss by rate·‖g‖². A wrong factor in g (tokens, micro-batches, loss
// scale) would scale the loss change by the factor, but ‖g‖² by the square of the factor. Adam and clipping would hide the
// factor.
TEST_CASE("the gradient is that of the mean loss over the tokens that count") {
  for (const auto& [numerics, compute, rate, tolerance] :
       {std::tuple{"fast", DType::f64, 1e-4, 1e-2}, {"exact", DType::f32, 1e-3, 0.05}})
    for (const std::int64_t micro : {8, 2})
      for (const double scale : {1.0, 16.0}) {
        TrainingOptions options = small(numerics, compute);
        options.shape.dropout = 0;
        options.batch.micro = micro;
        options.scaler.scale = scale;
        options.optimizer.kind = OptimizerKind::sgd;
        options.optimizer.momentum = 0;
        options.optimizer.decay = 0;
        options.optimizer.clip = 0;
        options.optimizer.rate = {.decay = RateDecay::constant, .peak = rate};
        SmallRun run(options);
        const ReadSamples masked = [&run](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
          run.read()(first, samples, rows);
          for (std::size_t i = 0; i < rows.targets.size(); ++i)
            if ((static_cast<std::size_t>(first) * 16 + i) % 5 < 2) rows.targets[i] = -1;
        };
        const StepResult step = run.training.step(masked);
        const double lower = step.loss - run.training.evaluate(masked, 8);
        INFO(numerics << ", micro-batch " << micro << ", loss scale " << scale << ", ‖g‖ " << step.gradient_norm);
        CHECK(step.tokens < 8 * 16);
        CHECK(lower == Approx(rate * step.gradient_norm * step.gradient_norm).epsilon(tolerance));
      }
}

TEST_CASE("the gradient is clipped to the requested norm") {
  TrainingOptions options = small();
  options.optimizer.kind = OptimizerKind::sgd;
  options.optimizer.momentum = 0;
  options.optimizer.decay = 0;
  options.optimizer.clip = 0.01;
  options.optimizer.rate = {.decay = RateDecay::constant, .peak = 1};
  SmallRun run(options);
  const auto weights = [&] {
    std::vector<double> all;
    run.training.optimizer().each_state([&](const std::string& name, const Owned&, const Tensor& t) {
      if (name.find('/') == std::string::npos)
        for (const float v : t.values<float>()) all.push_back(v);
    });
    return all;
  };
  const auto before = weights();
  const StepResult result = run.steps(1)[0];
  const auto after = weights();
  double moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i) moved += (after[i] - before[i]) * (after[i] - before[i]);
  CHECK(result.gradient_norm > 0.1);
  CHECK(std::sqrt(moved) == Approx(0.01).epsilon(1e-3));
}

}  // namespace chorale::test
