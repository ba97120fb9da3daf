// Tests how the choice counts of complete steps balance experts. Covers when and how biases change. Results must be
// bit-identical on every layout and after resuming from a checkpoint. tests/math/routing_test.cpp tests how biases and
// counts affect a single routing.
#include "parallel/generation/generation.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/state/resume.hpp"
#include "parallel/state/stored_weights.hpp"
#include "tests/catch.hpp"
#include "tests/math/cuda/gpu.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

constexpr double rate = 0.02;

TrainingOptions balanced(const Layout& layout, double capacity = 0) {
  TrainingOptions options = test::options_for("exact", layout);
  options.shape = test::small_moe(capacity);
  Experts& experts = options.shape.experts;
  experts.score = ScoreFunction::sigmoid;
  experts.bias = true;
  experts.bias_rate = rate;
  experts.balancing = BalanceOver::step;
  return options;
}

std::vector<float> biases_of(const Training& training) {
  const auto values = training.balance().bias()->value.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("a bias rises if fewer tokens than the mean chose its expert, and falls if more did") {
  HostMemory host;
  test::Run run(balanced({}), Mesh(), host);
  std::vector<float> expected(2 * 6);
  for (int step = 0; step < 3; ++step) {
    run.steps(1);
    for (std::int64_t block = 0; block < 2; ++block)
      for (std::int64_t e = 0; e < 6; ++e) {
        const double missing =
            12 * 12 * 2 / 6.0 - static_cast<double>(run.training.choices().chosen(block)[static_cast<std::size_t>(e)]);
        expected[static_cast<std::size_t>(block * 6 + e)] += static_cast<float>(missing > 0   ? rate
                                                                                : missing < 0 ? -rate
                                                                                              : 0);
      }
    CHECK(biases_of(run.training) == expected);
  }
}

TEST_CASE("biases make the loads of experts more equal") {
  const auto unevenness = [](bool biased) {  // mean squared deviation of the loads in the last of 30 steps
    HostMemory host;
    TrainingOptions options = balanced({});
    options.shape.experts.bias = biased;
    options.shape.experts.bias_rate = 0.002;
    options.shape.experts.balance = 0;
    test::Run run(options, Mesh(), host);
    for (int step = 0; step < 30; ++step) run.training.step(run.read);
    double sum = 0;
    for (std::int64_t block = 0; block < 2; ++block)
      for (const std::int64_t n : run.training.choices().chosen(block)) sum += std::pow(static_cast<double>(n) / 48 - 1, 2);
    return sum / 12;
  };
  CHECK(unevenness(true) < 0.5 * unevenness(false));
}

TEST_CASE("evaluations and recomputation do not move the biases") {
  HostMemory host;
  const test::Seen expected = test::Run(balanced({}), Mesh(), host).steps(3).seen;
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    TrainingOptions options = balanced({});
    options.recompute = recompute;
    options.batch.micro = 3;
    test::Run run(options, Mesh(), host);
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> before = biases_of(run.training);
      run.training.evaluate(run.read, 5);
      CHECK(biases_of(run.training) == before);
      run.steps(1);
    }
    CHECK(difference(expected, run.seen) == "");
  }
}

TEST_CASE("the balance loss of whole steps begins in the second step") {
  const auto norms = [](double coefficient) {
    HostMemory host;
    TrainingOptions options = balanced({});
    options.shape.experts.balance = coefficient;
    const test::Seen seen = test::Run(options, Mesh(), host).steps(2).seen;
    std::vector<double> norms;
    for (const StepResult& step : seen.steps) norms.push_back(step.gradient_norm);
    return norms;
  };
  const std::vector<double> with = norms(5), without = norms(0);
  CHECK(with[0] == without[0]);
  CHECK(with[1] != without[1]);
}

TEST_CASE("balanced experts have the same bits on every layout, also after a checkpoint of another", "[threads]") {
  for (const double capacity : {0.0, 0.7}) {
    HostMemory host;
    const test::Seen expected = test::Run(balanced({}, capacity), Mesh(), host).steps(4).seen;
    test::Seen later = expected;
    later.forget(2);
    std::vector<Layout> layouts;
    for (const char* word : {"dp1", "dp3.z1", "dp1.tp2.pp2", "dp2.ep2.z3", "dp2.tp2.ep2.sp", "dp2.pp2.ep2.z2.zb-h1"})
      layouts.push_back(parse_layout(word, 0));
    for (std::size_t from = 0; from < layouts.size(); ++from) {
      const Layout& to = layouts[(from + 1) % layouts.size()];
      INFO(to_string(layouts[from]) << ", then " << to_string(to) << ", capacity " << capacity);
      const test::TemporaryFolder folder;
      REQUIRE(test::on_thread_mesh(layouts[from], [&](Mesh mesh, Memory& memory) -> std::string {
                test::Run run(balanced(layouts[from], capacity), std::move(mesh), memory);
                run.steps(2);
                save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training),
                                peers_of(run.training.mesh()));
                return difference(expected, run.steps(2).seen);
              }) == "");
      CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
              Log log({.level = "off"});
              test::Run run(balanced(to, capacity), std::move(mesh), memory);
              resume(run.training, Checkpoint::open(folder, log, peers_of(run.training.mesh())));
              return difference(later, run.steps(2).seen);
            }) == "");
    }
  }
}

TEST_CASE("device: balanced experts have the host's bits and the plan's bytes", "[gpu]") {
  const Gpu gpu;
  if (!gpu) return;
  const DevicePlugin plugin;
  const auto memory = cuda_memory(plugin, 0);
  for (const double capacity : {0.0, 0.7}) {
    HostMemory host;
    TrainingOptions options = balanced({}, capacity);
    options.batch.micro = 3;
    const test::Seen expected = test::Run(options, Mesh(), host).steps(2).seen;
    options.kernels.device = &plugin;
    test::Run run(options, Mesh(), *memory);
    CHECK(difference(expected, run.steps(2).seen) == "");
    const auto params = static_cast<std::size_t>(Category::params);
    const RankPlan plan = plan_rank({.options = options}, 0), seen = observed(run.training);
    CHECK((plan.held[params] == seen.held[params] && plan.peak[params] == seen.peak[params]));
  }
}

TEST_CASE("generation loads the biases of a checkpoint") {
  HostMemory host;
  test::Run run(balanced({}), Mesh(), host);
  run.steps(2);
  const test::TemporaryFolder folder;
  save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training));
  Log log({.level = "off"});
  Ledger ledger;
  Allocator memory(host, ledger);
  const StoredWeights stored(folder.path(), memory, log);
  Generator generator({.shape = stored.shape()}, Mesh(), host);
  stored.read(generator.weights(), {});
  const Owned bias = generator.weights().back();
  REQUIRE(bias.parameter->name == "expert_bias");
  const auto values = bias.value.values<float>();
  CHECK(std::vector<float>(values.begin(), values.end()) == biases_of(run.training));
}

TEST_CASE("a model refuses biases and balance losses that it cannot have") {
  const auto text = [](auto change) {
    ModelShape shape = balanced({}).shape;
    change(shape.experts);
    return test::refused([&] { shape.check(); });
  };
  CHECK_THAT(text([](Experts& e) { e.score = ScoreFunction::softmax; }), Catch::Contains("sigmoid"));
  CHECK_THAT(text([](Experts& e) { e.bias_rate = -1; }), Catch::Contains("--moe-router-bias-update-rate"));
  CHECK_THAT(test::refused([] { named<BalanceOver>("aux_loss"); }), Catch::Contains("are seq_aux_loss, global_aux_loss"));
}

}  // namespace
}  // namespace chorale
