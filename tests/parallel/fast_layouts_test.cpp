// In fast numerics, the order of additions depends on the layout. So results are compared with a one-rank run within
// tolerances. The comparison covers the first loss, every gradient tensor, the gradient norm and a later loss. Losses alone
// are not enough, because Adam hides a constant factor in the gradient.
#include <cmath>
#include <functional>
#include <sstream>

#include "parallel/state/fingerprint.hpp"
#include "parallel/state/parts.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

constexpr int many_steps = 30;

// Results of a one-rank run: the first step with the step's gradients, and the losses of all steps.
struct Expected {
  StepResult first;
  std::vector<double> losses;
  double norm = 0;  // norm of the gradients of the summed loss (not the mean loss)
  std::map<std::string, std::vector<float>> gradients;
};

double square(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return sum;
}

Expected alone(const TrainingOptions& options) {
  HostMemory host;
  TrainingOptions whole = options;
  whole.batch.micro = whole.batch.global;
  test::Run run(whole, Mesh(), host);
  Expected expected{.first = run.training.step(run.read)};
  for (const ParameterPointer& p : run.training.parameters()) {
    const auto values = p->gradient.values<float>();
    std::vector<float>& copy = expected.gradients[p->name];
    copy.assign(values.begin(), values.end());
    expected.norm += square(copy);
  }
  expected.norm = std::sqrt(expected.norm);
  expected.losses = {expected.first.loss};
  while (expected.losses.size() < many_steps) expected.losses.push_back(run.training.step(run.read).loss);
  return expected;
}

struct Distance {
  double square = 0;
  std::int64_t elements = 0;
};

// For every gradient tensor, returns ‖Δ‖² and the number of compared elements, summed over the parts of all ranks. If
// several ranks have copies of a part, each copy counts.
std::map<std::string, Distance> distances(Training& training, const Expected& expected) {
  std::string mine;
  for (const Owned& owned : training.buckets().owned()) {
    const Parameter& p = *owned.parameter;
    std::vector<float> here(static_cast<std::size_t>(owned.count));
    const Part part = resolved({.shard = p.shard, .first = owned.first, .count = owned.count}, p.shape);
    copy_common(p.shape, sizeof(float), resolved({}, p.shape), std::as_bytes(std::span(expected.gradients.at(p.name))), part,
                std::as_writable_bytes(std::span(here)));
    const auto gradient = owned.gradient.values<float>();
    for (std::size_t i = 0; i < here.size(); ++i) here[i] -= gradient[i];
    mine += fmt::format("{} {} {}\n", p.name, square(here), owned.count);
  }
  std::map<std::string, Distance> all;
  for (const std::string& text : training.mesh().world().exchange(mine)) {
    std::istringstream lines(text);
    Distance d;
    for (std::string name; lines >> name >> d.square >> d.elements;) {
      all[name].square += d.square;
      all[name].elements += d.elements;
    }
  }
  return all;
}

std::string stray_gradient(Training& training, const Expected& expected) {
  const auto found = distances(training, expected);
  for (const auto& [name, whole] : expected.gradients) {
    const auto at = found.find(name);
    const auto elements = static_cast<std::int64_t>(whole.size());
    if (at == found.end() || at->second.elements % elements != 0) return "the ranks together do not have all of " + name;
    const double copies = static_cast<double>(at->second.elements / elements);
    const double apart = std::sqrt(at->second.square / copies), length = std::sqrt(square(whole));
    if (!(apart <= 1e-5 * std::max(length, 1e-3 * expected.norm)))
      return fmt::format("the gradient of {} differs by {} in norm, its own norm is {}", name, apart, length);
  }
  return "";
}

bool near(double a, double b, double relative) { return std::abs(a - b) <= relative * std::abs(b); }

std::string strays(const TrainingOptions& options, Mesh mesh, Memory& memory, const Expected& expected, std::size_t steps) {
  test::Run run(options, std::move(mesh), memory);
  const StepResult first = run.training.step(run.read);
  if (!near(first.loss, expected.first.loss, 1e-6))
    return fmt::format("loss {}, expected {}", first.loss, expected.first.loss);
  if (!near(first.gradient_norm, expected.first.gradient_norm, 1e-5))
    return fmt::format("norm {}, expected {}", first.gradient_norm, expected.first.gradient_norm);
  if (std::string stray = stray_gradient(run.training, expected); !stray.empty()) return stray;
  double last = first.loss;
  for (std::size_t step = 1; step < steps; ++step) last = run.training.step(run.read).loss;
  const double wanted = expected.losses[steps - 1];
  return near(last, wanted, 1e-3) ? "" : fmt::format("loss {} in step {}, expected {}", last, steps, wanted);
}

TEST_CASE("with fast numerics, every layout gives nearly the results of one rank", "[threads]") {
  const Expected expected = alone(test::options_for("fast", {}));
  test::Sample tenth(10);
  for (const Layout& layout : test::covering({2, 3, 4, 6, 8}, test::layouts_of)) {
    const std::size_t steps = tenth.takes() ? many_steps : 4;
    INFO(to_string(layout));
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
            return strays(test::options_for("fast", layout), std::move(mesh), memory, expected, steps);
          }) == "");
  }
}

// A sequence of 41 tokens is divided into leaves (blocks of tokens) of 4 tokens each and a last leaf of 1 token.
TEST_CASE("every scheme and cut of context parallelism gives nearly the results of one rank", "[threads]") {
  const auto options_of = [](ModelFamily family, const Layout& layout) {
    TrainingOptions options = test::options_for("fast", layout);
    options.shape.sequence = 41;
    options.shape.family = family;
    options.shape.tied = options.shape.family == ModelFamily::gpt2;
    return options;
  };
  test::Sample fifth(5);
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama}) {
    const Expected expected = alone(options_of(family, {}));
    for (const ContextScheme& scheme : context_schemes())
      for (const CutRow& cut : token_cuts())
        for (const char* word : {"dp1.cp2", "dp1.cp3", "dp1.cp5", "dp2.cp2.z2", "dp1.tp2.cp2", "dp1.pp2.cp2.z3"}) {
          const Layout layout = parse_layout(word, 0);
          INFO(name_of(family) << ", " << word << ", " << scheme.name << ", " << cut.name);
          TrainingOptions options = options_of(family, layout);
          options.context = {&scheme, &cut};
          if (!test::fits(options, layout)) continue;  // too few heads for ulysses
          if (!fifth.takes()) continue;
          CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
                  return strays(options, std::move(mesh), memory, expected, 3);
                }) == "");
          if (std::string(word) != "dp1.cp3") continue;
          options.compute = DType::bf16;
          CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
                  test::Run run(options, std::move(mesh), memory);
                  const StepResult first = run.training.step(run.read);
                  return near(first.loss, expected.first.loss, 2e-2) &&
                                 near(first.gradient_norm, expected.first.gradient_norm, 0.1)
                             ? ""
                             : fmt::format("loss {}, norm {}", first.loss, first.gradient_norm);
                }) == "");
        }
  }
}

TrainingOptions with_experts(const Layout& layout) {
  TrainingOptions options = test::options_for("fast", layout);
  options.shape = test::small_moe(0.75);
  return options;
}

TEST_CASE("with fast numerics, ranks that divide the experts give nearly the results of one rank", "[threads]") {
  const Expected expected = alone(with_experts({}));
  for (const Layout& layout : test::covering({2, 4, 6, 8}, test::expert_layouts_of)) {
    INFO(to_string(layout));
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
            return strays(with_experts(layout), std::move(mesh), memory, expected, 4);
          }) == "");
  }
}

TEST_CASE("on 2 and 6 ranks, the first loss and norm in bf16 are nearly those in f32", "[threads]") {
  const Expected expected = alone(test::options_for("fast", {}));
  for (const Layout& layout : test::covering({2, 6}, test::layouts_of)) {
    INFO(to_string(layout));
    TrainingOptions options = test::options_for("fast", layout);
    options.compute = DType::bf16;
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            test::Run run(options, std::move(mesh), memory);
            const StepResult first = run.training.step(run.read);
            if (!near(first.loss, expected.first.loss, 2e-2)) return fmt::format("loss {}", first.loss);
            return near(first.gradient_norm, expected.first.gradient_norm, 0.1)
                       ? ""
                       : fmt::format("norm {}", first.gradient_norm);
          }) == "");
  }
}

TEST_CASE("bf16 without masters learns nearly as well as with masters, and its copies stay equal on all ranks",
          "[threads]") {
  for (const char* word : {"dp1", "dp2", "dp2.z1", "dp3.z3", "dp2.tp2.sp", "dp1.pp2"}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word);
    std::vector<double> losses(2);
    for (const bool masters : {true, false}) {
      TrainingOptions options = test::options_for("fast", layout);
      options.compute = DType::bf16;
      options.optimizer.masters = masters;
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(options, std::move(mesh), memory);
              double loss = 0;
              for (int i = 0; i < 2 * many_steps; ++i) loss = run.training.step(run.read).loss;
              if (run.training.mesh().world().rank() == 0) losses[masters] = loss;
              for (const auto& [name, number] : fingerprint(run.training))
                if (name.find('@') != std::string::npos) return "a copy differs: " + name;
              return "";
            }) == "");
    }
    CHECK(near(losses[0], losses[1], 2e-2));
    CHECK(losses[0] != losses[1]);
  }
}

void near_on_processes(const std::function<TrainingOptions(const Layout&)>& options_of,
                       const std::function<std::vector<Layout>(int world)>& layouts_of, std::size_t steps) {
  const Expected expected = alone(options_of({}));
  SystemClock clock;
  test::Sample ninth(9, 5);
  for (const Backend& backend : all_backends()) {
    if (!test::joins_all(backend)) continue;
    const Worlds worlds(open_world(backend.name, test::world(), clock));
    for (const Layout& layout : test::covering({test::world().size()}, layouts_of)) {
      if (!ninth.takes()) continue;
      INFO(to_string(layout) << " on " << backend.name);
      const TrainingOptions options = options_of(layout);
      REQUIRE_ALL(strays(options, Mesh(layout, worlds, {}), worlds.memory(), expected, steps) == "");
    }
  }
}

TEST_CASE("with fast numerics, processes give nearly the results of one rank", "[spmd]") {
  near_on_processes([](const Layout& layout) { return test::options_for("fast", layout); }, test::layouts_of,
                    test::thorough() ? many_steps : 4);
  near_on_processes(with_experts, test::expert_layouts_of, 4);
}

}  // namespace
}  // namespace chorale
