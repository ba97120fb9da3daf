// Tests the times at which the optimizer updates (updates.hpp). On every kind of layout, with and without offload,
// overlapped and speculative updates must be bit-identical to updates after the norm. Delayed updates must be bit-identical
// to their recurrence. Transferred bytes and memory use must be as planned.
#include "parallel/step/updates.hpp"

#include "parallel/plan/plan.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/resume.hpp"
#include "src/base/log.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"
#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

// Every token counts in the loss, except in step `masked`. If `masked` is 0, all tokens count in all steps.
ReadSamples counted_samples(const TrainingOptions& o, std::int64_t masked = 0) {
  return [read = test::samples_of(o.shape), batch = o.batch.global, masked](std::int64_t first, std::int64_t samples,
                                                                            const SampleRows& rows) {
    read(first, samples, rows);
    if (first / batch + 1 != masked) std::ranges::replace(rows.targets, -1, 5);
  };
}

struct Seen : test::Seen {
  std::int64_t updates = 0, rolled_back = 0;
};

Seen seen_in(test::Run& run, int steps) {
  run.steps(steps).seen.held_out = run.training.evaluate(run.read, 7);
  Seen seen{run.seen};
  for (const StepResult& step : seen.steps) {
    seen.updates += step.updates;
    seen.rolled_back += step.rolled_back;
  }
  return seen;
}

// Returns the results of rank 0 after six steps.
Seen run_steps(const TrainingOptions& options, const Layout& layout, std::int64_t masked = 0) {
  Seen seen;
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const bool first = mesh.world().rank() == 0;
          test::Run run(options, std::move(mesh), memory);
          run.read = counted_samples(options, masked);
          const Seen mine = seen_in(run, 6);
          if (first) seen = mine;
          return "";
        }) == "");
  return seen;
}

TrainingOptions options_on(const Layout& layout, const char* numerics, bool offloads, const std::filesystem::path& folder) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.batch.micro = std::max<std::int64_t>(options.batch.micro / 2, 1);
  options.optimizer.clip = 0;
  if (offloads) options.offload = {layout.zero == 3, layout.zero >= 2, true, folder.string(), 4096};
  return options;
}

const char* const layouts[] = {"dp1",           "dp2",        "dp2.z1",     "dp2.z2",      "dp2.z3",     "dp1.tp2",
                               "dp2.tp2.z3.sp", "dp2.pp2.z1", "dp2.pp2.z3", "dp2.rep2.z3", "dp2.cp2.z2", "dp2.rep2.z3.hpz",
                               "dp1.pp2.zb-h1"};

TEST_CASE("updates that overlap the backward pass have the bits of updates after it, on any layout", "[threads]") {
  const test::TemporaryFolder folder;
  test::Sample fifth(5);
  for (const char* numerics : {"fast", "exact"})
    for (const char* word : layouts)
      for (const bool offloads : {false, true}) {
        if (!fifth.takes()) continue;
        const Layout layout = parse_layout(word, 0);
        TrainingOptions options = options_on(layout, numerics, offloads, folder.path());
        INFO(numerics << ", " << word << (offloads ? ", offloaded" : ""));
        const Seen after = run_steps(options, layout);
        options.update = UpdateTime::overlapped;
        CHECK(test::difference(after, run_steps(options, layout)) == "");
        options.update = UpdateTime::speculative;
        const Seen speculative = run_steps(options, layout, 3), masked = [&] {
          options.update = UpdateTime::after;
          return run_steps(options, layout, 3);
        }();
        CHECK(test::difference(masked, speculative) == "");
        CHECK((speculative.updates == 7 && speculative.rolled_back == 1));
      }
}

TEST_CASE("an update that assumed too much is rolled back: clipping, and the overflow of f16", "[threads]") {
  const test::TemporaryFolder folder;
  const Layout layout = parse_layout("dp2.z3", 0);
  test::Sample third(3);
  for (const DType compute : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const bool offloads : {false, true})
      for (const bool masters : {true, false}) {
        if ((!masters && compute != DType::bf16) || !third.takes()) continue;
        INFO(name_of(compute) << (offloads ? ", offloaded" : ""));
        TrainingOptions options = options_on(layout, "fast", offloads, folder.path());
        options.compute = compute;
        options.optimizer.masters = masters;
        options.optimizer.clip = compute == DType::f16 ? 0 : 2;
        if (compute == DType::f16)
          options.scaler = {.dynamic = true, .scale = 1 << 14, .growth_interval = 1, .hysteresis = 1, .patience = 1};
        const Seen after = run_steps(options, layout, 5);
        options.update = UpdateTime::speculative;
        const Seen speculative = run_steps(options, layout, 5);
        CHECK(test::difference(after, speculative) == "");
        CHECK(speculative.rolled_back > 0);
      }
}

// θ(t+1) = θ(t) − Adam(g(θ(t−1))). A training run with learning rate 0 provides the gradients.
TEST_CASE("delayed updates are those of their recurrence, bit for bit") {
  const test::TemporaryFolder folder;
  for (const bool offloads : {false, true}) {
    const Layout layout = parse_layout("dp1.z3", 1);
    TrainingOptions options = options_on(layout, "fast", offloads, folder.path());
    options.optimizer.clip = 0.5;
    options.update = UpdateTime::delayed;
    HostMemory host;
    test::Run delayed(options, Mesh(layout), host);
    options.update = UpdateTime::after;
    options.offload = {};
    const LearningRate rates = std::exchange(options.optimizer.rate, {.peak = 0, .minimum = 0, .warmup = 0, .steps = 20});
    test::Run oracle(options, Mesh(layout), host);
    struct Tensors {
      std::vector<float> theta, m, v, gradient;
    };
    std::vector<Tensors> all;
    for (const Owned& o : oracle.training.buckets().owned()) {
      const auto values = o.value.values<float>();
      const std::vector<float> zeros(values.size());
      all.push_back({{values.begin(), values.end()}, zeros, zeros, zeros});
    }
    double last_scale = 0;
    for (std::int64_t t = 1; t <= 6; ++t) {
      delayed.training.step(delayed.read);
      std::vector<Owned> owned = oracle.training.buckets().owned();
      for (std::size_t i = 0; i < all.size(); ++i) std::ranges::copy(all[i].theta, owned[i].value.values<float>().begin());
      const StepResult result = oracle.training.step(oracle.read);
      const double b1 = options.optimizer.beta1, b2 = options.optimizer.beta2;
      double power1 = 1, power2 = 1;
      for (std::int64_t k = 1; k < t; ++k) {
        power1 *= b1;
        power2 *= b2;
      }
      const AdamStep adam{rates.at(t - 2), b1, b2, options.optimizer.epsilon, options.optimizer.decay, 1 / (1 - power1),
                          1 / (1 - power2)};
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto& [theta, m, v, gradient] = all[i];
        const auto slice = [&](std::vector<float>& x) { return Slice{x.data(), std::ssize(x), DType::f32}; };
        if (t > 1)
          adamw(adam,
                std::vector<UpdateRange>{{.weights = slice(theta),
                                          .moments = {slice(m), slice(v)},
                                          .gradient = slice(gradient),
                                          .scale = last_scale,
                                          .decays = owned[i].parameter->decays}},
                {});
        std::ranges::copy(owned[i].gradient.values<float>(), gradient.begin());
        with_values<float>(delayed.training.buckets().owned()[i].value, Use::read, [&](std::span<float> values) {
          CHECK((std::ranges::equal(values, theta) && (t == 1 || theta != gradient)));
        });
      }
      last_scale =
          1 / static_cast<double>(result.tokens) * std::min(1.0, options.optimizer.clip / (result.gradient_norm + 1e-6));
    }
  }
}

TEST_CASE("delayed updates are the same on all layouts in exact numerics, and a resumed run continues them", "[threads]") {
  const test::TemporaryFolder folder;
  TrainingOptions options = test::options_for("exact", parse_layout("dp1", 1));
  options.update = UpdateTime::delayed;
  HostMemory host;
  const test::Seen alone = test::train_alone(options);
  Log log({.level = "off"});
  for (const char* word : {"dp1.z3", "dp2.z1", "dp2.z3", "dp1.tp2", "dp2.rep2.z2", "dp2.pp2.z3"})
    for (const bool offloads : {false, true}) {
      const Layout layout = parse_layout(word, 0);
      options = options_on(layout, "exact", offloads, folder.path());
      options.update = UpdateTime::delayed;
      options.optimizer.clip = 1;
      INFO(word);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return test::difference(alone, test::train(options, std::move(mesh), memory));
            }) == "");
    }
  options = options_on(parse_layout("dp1.z3", 1), "exact", true, folder.path());
  options.update = UpdateTime::delayed;
  const auto sets = folder.path() / "checkpoints";
  test::Run whole(options, Mesh(parse_layout("dp1.z3", 1)), host), half(options, Mesh(parse_layout("dp1.z3", 1)), host),
      rest(options, Mesh(parse_layout("dp1.z3", 1)), host);
  half.steps(2);
  save_checkpoint(sets, metadata_of(half.training, ""), state_to_save(half.training));
  resume(rest.training, Checkpoint::open(sets, log));
  CHECK((whole.steps(4).seen.prints.back() == rest.steps(2).seen.prints.back()));
  options.update = UpdateTime::after;  // continues with the saved master weights
  test::Run plain(options, Mesh(parse_layout("dp1.z3", 1)), host);
  resume(plain.training, Checkpoint::open(sets, log));
  plain.steps(1);
}

TEST_CASE("bytes and memory of every update are as planned") {
  const test::TemporaryFolder folder;
  const Layout layout = parse_layout("dp1.z3", 1);
  for (const UpdateTime update : {UpdateTime::after, UpdateTime::overlapped, UpdateTime::speculative, UpdateTime::delayed})
    for (const bool offloads : {true, false}) {
      INFO(name_of(update) << (offloads ? ", offloaded" : ""));
      TrainingOptions options = options_on(layout, "fast", offloads, folder.path());
      options.update = update;
      HostMemory host;
      test::Run run(options, Mesh(layout), host);
      run.read = counted_samples(options, update == UpdateTime::speculative ? 3 : 0);
      const PlanRequest request{.options = options, .layout = layout};
      run.training.clear_tier_traffic();
      RunCounts counts;
      for (int i = 0; i < 5; ++i) counts.count(run.training.step(run.read));
      run.training.settle_update();
      const RunPlan plan = plan_run(request, 0, 0);
      TierTraffic made = run.training.tier_passes();
      made.add(run.training.tier_updates(), 1);
      CHECK(plan.tier_after(counts) == made);
      for (std::size_t c = 0; c < categories; ++c) {
        INFO(category_names[c]);
        CHECK(run.training.memory().ledger().peak(static_cast<Category>(c)) == plan.step.peak[c]);
        CHECK(run.training.memory().tier_ledger().current(static_cast<Category>(c)) == plan.step.offloaded[c]);
      }
    }
}

TEST_CASE("updates that do not suit a run are refused, and masked tokens are noticed") {
  const auto refused = [](UpdateTime update, const std::function<void(TrainingOptions&)>& change, bool steps = false) {
    const Layout layout = parse_layout("dp1", 1);
    TrainingOptions options = test::options_for("fast", layout);
    options.update = update;
    options.optimizer.clip = 0;
    change(options);
    HostMemory host;
    return test::refused([&] {
      test::Run run(options, Mesh(layout), host);
      if (steps) run.training.step(run.read);
    });
  };
  const auto f16 = [](TrainingOptions& o) {
    o.compute = DType::f16;
    o.scaler.dynamic = true;
    o.scaler.scale = 1024;
  };
  CHECK_THAT(refused(UpdateTime::overlapped, [](TrainingOptions& o) { o.optimizer.clip = 1; }),
             says("needs a factor of the gradients") && says("--clip-grad 0"));
  CHECK_THAT(refused(UpdateTime::overlapped, f16), says("f16 scales its loss") && says("--dtype bf16"));
  CHECK_THAT(refused(UpdateTime::delayed, f16), says("cannot skip a step"));
  CHECK_THAT(refused(UpdateTime::overlapped, [](TrainingOptions& o) { o.batch.packed = true; }), says("every token counts"));
}

}  // namespace
}  // namespace chorale
