// Training on one rank: what must not change the result does not change a bit of it, and what goes wrong is named.
#include "parallel/training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "parallel/resume.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

TrainingOptions small(const char* numerics = "fast", DType compute = DType::f32) {
  TrainingOptions o{.shape = {"gpt2", 2, 4, 4, 32, 128, 16, 96}};
  o.shape.dropout = 0.1;
  o.numerics = numerics;
  o.compute = compute;
  o.global_batch = o.micro_batch = 8;
  o.rate = {.decay = "cosine", .peak = 5e-3, .minimum = 1e-4, .warmup = 5, .steps = 100};
  return o;
}

struct Run {
  HostMemory host;
  SystemClock clock;
  SyntheticLanguage language{96, 7};
  Sampler sampler{1000, 7, 0.1};
  Training training;

  explicit Run(const TrainingOptions& options) : training(options, host, clock) {}
  ReadSamples read() {
    return
        [this](std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
          std::vector<std::int64_t> which;
          for (std::int64_t i = 0; i < samples; ++i) which.push_back(sampler.training_sample(first + i));
          fill_batch(language, which, 16, inputs, targets);
        };
  }
  std::vector<StepResult> steps(int count) {
    std::vector<StepResult> all;
    for (int i = 0; i < count; ++i) all.push_back(training.step(read()));
    return all;
  }
  // All bytes of weights and moments.
  std::vector<std::byte> state() {
    std::vector<std::byte> all;
    for (const StateTensor& t : state_of(training)) {
      const auto* bytes = static_cast<const std::byte*>(t.data.data);
      all.insert(all.end(), bytes, bytes + t.data.bytes());
    }
    return all;
  }
};

void same_losses(const std::vector<StepResult>& a, const std::vector<StepResult>& b) {
  REQUIRE(a.size() == b.size());
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };  // f16 may overflow
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK((same(a[i].loss, b[i].loss) && same(a[i].gradient_norm, b[i].gradient_norm)));
}

const std::tuple<const char*, DType> modes[] = {
    {"fast", DType::f32}, {"fast", DType::bf16}, {"fast", DType::f16}, {"exact", DType::f32}};

TEST_CASE("two runs of one seed are the same to the bit, and two seeds are not") {
  for (const auto& [numerics, compute] : modes) {
    Run one(small(numerics, compute)), two(small(numerics, compute));
    same_losses(one.steps(5), two.steps(5));
    CHECK(one.state() == two.state());
    TrainingOptions other = small(numerics, compute);
    other.seed = 99;
    Run three(other);
    CHECK(three.steps(1)[0].loss != one.steps(1)[0].loss);
  }
}

TEST_CASE("a run that stops and resumes is the run that did not, to the bit") {
  for (const auto& [numerics, compute] : modes)
    for (const char* optimizer : {"adamw", "sgd"}) {
      TrainingOptions options = small(numerics, compute);
      options.optimizer = optimizer;
      if (compute == DType::f16)
        options.scaler = {.dynamic = true, .scale = 0x1p30, .growth_interval = 4};  // overflows, recovers
      const test::TemporaryFolder folder;
      Log log({.level = "off"});
      Run whole(options), first(options), second(options);
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

TEST_CASE("exact numerics have the same bits for every micro-batch and for one thread and two") {
  Run whole(small("exact"));
  const auto expected = whole.steps(4);
  for (const std::int64_t micro : {1, 2, 4, 8})
    for (const int threads : {1, 2}) {
      TrainingOptions options = small("exact");
      options.micro_batch = micro;
      options.threads = threads;
      options.remake = micro == 2 ? Remake::full : micro == 4 ? Remake::selective : Remake::none;
      Run run(options);
      same_losses(run.steps(4), expected);
      INFO("micro-batch " << micro << ", " << threads << " threads");
      CHECK(run.state() == whole.state());
    }
}

TEST_CASE("fast numerics come to nearly the same for every micro-batch") {
  Run whole(small());
  const auto expected = whole.steps(4);
  TrainingOptions options = small();
  options.micro_batch = 2;
  Run cut(options);
  const auto seen = cut.steps(4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(seen[i].loss == Approx(expected[i].loss).epsilon(1e-5));
  CHECK(seen[0].gradient_norm == Approx(expected[0].gradient_norm).epsilon(1e-5));
}

TEST_CASE("a small model learns, whatever it computes in") {
  for (const auto& [numerics, compute] : modes) {
    TrainingOptions options = small(numerics, compute);
    options.shape.dropout = 0;
    if (compute == DType::f16) options.scaler = {.dynamic = true, .scale = 65536};
    Run run(options);
    const auto steps = run.steps(60);
    INFO(numerics << " " << name_of(compute));
    CHECK(steps.front().loss == Approx(std::log(96.0)).epsilon(0.02));
    CHECK(steps.back().loss < 0.9 * steps.front().loss);
    const double held_out = run.training.evaluate(run.read(), 16);
    CHECK(held_out == Approx(steps.back().loss).epsilon(0.1));
  }
}

TEST_CASE("f16 skips the steps that overflow, and finds its scale") {
  TrainingOptions options = small("fast", DType::f16);
  options.scaler = {.dynamic = true, .scale = 0x1p30, .growth_interval = 1000, .hysteresis = 1, .patience = 1};
  Run run(options);
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

TEST_CASE("dropout is another one at every step, and none in evaluations") {
  TrainingOptions options = small();
  options.rate = {.decay = "constant", .peak = 0, .minimum = 0};
  Run dropping(options);
  options.shape.dropout = 0;
  Run whole(options);
  const ReadSamples same = [&](std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs,
                               std::span<std::int32_t> targets) { whole.read()(first % 8, samples, inputs, targets); };
  const double first = dropping.training.step(same).loss, second = dropping.training.step(same).loss;
  CHECK(first != second);
  CHECK(whole.training.step(same).loss == whole.training.step(same).loss);
  CHECK(dropping.training.evaluate(same, 8) == whole.training.step(same).loss);
  CHECK(first != whole.training.step(same).loss);
}

TEST_CASE("weight decay is for matrices") {
  for (const char* optimizer : {"adamw", "sgd"}) {
    TrainingOptions options = small();
    options.optimizer = optimizer;
    options.decay = 0.5;
    options.rate = {.decay = "constant", .peak = 0.1};
    Run run(options);
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
    run.training.step(
        [&](std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
          run.read()(first, samples, inputs, targets);
          std::fill(targets.begin(), targets.end(), -1);  // no gradient at all
        });
    for (const ParameterPointer& p : run.training.parameters()) {
      INFO(optimizer << " " << p->name);
      CHECK(p->value.values<float>()[3] == Approx(before.at(p->name)[3] * (p->shape.size() == 2 ? 0.95 : 1)));
    }
  }
}

// To first order a step of plain descent lowers the mean loss by rate·‖g‖². A factor in g (the tokens, the micro-batches, the loss scale) would
// come once on one side and twice on the other; Adam and clipping would hide it.
TEST_CASE("the gradient is that of the mean loss over the tokens that count") {
  for (const auto& [numerics, compute, rate, tolerance] :
       {std::tuple{"fast", DType::f64, 1e-4, 1e-2}, {"exact", DType::f32, 1e-3, 0.05}})
    for (const std::int64_t micro : {8, 2})
      for (const double scale : {1.0, 16.0}) {
        TrainingOptions options = small(numerics, compute);
        options.shape.dropout = 0;
        options.micro_batch = micro;
        options.scaler.scale = scale;
        options.optimizer = "sgd";
        options.momentum = 0, options.decay = 0, options.clip = 0;
        options.rate = {.decay = "constant", .peak = rate};
        Run run(options);
        const ReadSamples masked = [&run](std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs,
                                          std::span<std::int32_t> targets) {
          run.read()(first, samples, inputs, targets);
          for (std::size_t i = 0; i < targets.size(); ++i)
            if ((static_cast<std::size_t>(first) * 16 + i) % 5 < 2) targets[i] = -1;
        };
        const StepResult step = run.training.step(masked);
        const double lower = step.loss - run.training.evaluate(masked, 8);
        INFO(numerics << ", micro-batch " << micro << ", loss scale " << scale << ", ‖g‖ " << step.gradient_norm);
        CHECK(step.tokens < 8 * 16);
        CHECK(lower == Approx(rate * step.gradient_norm * step.gradient_norm).epsilon(tolerance));
      }
}

TEST_CASE("the gradient is clipped to the length asked for") {
  TrainingOptions options = small();
  options.optimizer = "sgd";
  options.momentum = 0, options.decay = 0, options.clip = 0.01;
  options.rate = {.decay = "constant", .peak = 1};
  Run run(options);
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

void spoil(Run& run, const std::string& parameter) {
  for (const ParameterPointer& p : run.training.parameters())
    if (p->name == parameter)
      visit_floating(p->value.dtype(),
                     [&]<class T>(Type<T>) { p->value.values<T>()[5] = T(std::numeric_limits<float>::quiet_NaN()); });
}

TEST_CASE("a NaN is named where it was born") {
  for (const auto& [numerics, compute] : {std::tuple{"fast", DType::f32}, {"fast", DType::bf16}, {"exact", DType::f32}})
    for (const Remake remake : {Remake::none, Remake::full})
      for (const std::string layer : {"block.1.mlp.up", "block.1.mlp.down", "block.1.attention.qkv"}) {
        TrainingOptions options = small(numerics, compute);
        options.remake = remake;
        Run run(options);
        run.steps(2);
        spoil(run, layer + ".weight");
        const auto before = run.state();
        try {
          run.steps(1);
          FAIL("nobody noticed");
        } catch (const Error& error) {
          const std::string what = error.what();
          INFO(numerics << " " << name_of(compute) << " " << layer << ": " << what);
          CHECK(what.find("step 3") != std::string::npos);
          CHECK(what.find(layer) != std::string::npos);
        }
        if (compute == DType::bf16) CHECK(run.state() == before);  // the masters are as they were
      }
}

TEST_CASE("an evaluation does not sum what are no numbers") {
  Run exact(small("exact")), fast(small("fast"));
  for (Run* run : {&exact, &fast}) spoil(*run, "block.1.mlp.down.weight");
  CHECK_THROWS_AS(exact.training.evaluate(exact.read(), 8), Error);
  CHECK(std::isnan(fast.training.evaluate(fast.read(), 8)));
}

TEST_CASE("f16 goes on from a run that had no loss scale with its own") {
  const test::TemporaryFolder folder;
  Log log({.level = "off"});
  TrainingOptions half = small("fast", DType::f16);
  half.scaler = {.dynamic = true, .scale = 1024};
  Run plain(small()), scaled(half);
  save_checkpoint(folder.path(), metadata_of(plain.training, ""), state_of(plain.training));
  resume(scaled.training, Checkpoint::open(folder.path(), log));
  CHECK(scaled.training.scaler().scale == 1024);
  scaled.steps(1);
  save_checkpoint(folder.path(), metadata_of(scaled.training, ""), state_of(scaled.training));
  resume(plain.training, Checkpoint::open(folder.path(), log));
  CHECK(plain.training.scaler().scale == 1);
}

TEST_CASE("numbers that do not go together are refused") {
  const auto refused = [](const TrainingOptions& options) -> std::string {
    try {
      Run run(options);
    } catch (const Error& error) {
      return error.exit() == Exit::usage ? error.what() : "";
    }
    return "";
  };
  TrainingOptions o = small();
  o.micro_batch = 3;
  CHECK(refused(o).find("global-batch-size 8 is no multiple of micro-batch-size 3") != std::string::npos);
  CHECK(refused(small("exact", DType::bf16)).find("exact numerics compute in f32") != std::string::npos);
}

TEST_CASE("a checkpoint of other numbers is refused") {
  const test::TemporaryFolder folder;
  Log log({.level = "off"});
  Run run(small());
  save_checkpoint(folder.path(), metadata_of(run.training, ""), state_of(run.training));
  const auto refused = [&](const TrainingOptions& options) -> std::string {
    Run other(options);
    try {
      resume(other.training, Checkpoint::open(folder.path(), log));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  TrainingOptions wider = small();
  wider.shape.width = 64;
  CHECK_FALSE(refused(wider).empty());
  CHECK(refused(small("exact")).find("other numerics") != std::string::npos);
  TrainingOptions seed = small();
  seed.seed = 5;
  CHECK(refused(seed).find("another seed") != std::string::npos);
  CHECK(refused(small()).empty());
}

}  // namespace
}  // namespace chorale
