// Tests --on-nan. NaN and Inf must be reported in the step in which they appear. The run must then continue. From then on,
// the run must be bit-identical to a run without NaN that skips the same step or returns to the same checkpoint.
//
//   INJECTIONS=100 SEED=7 build/tests_run "NaN and Inf at random places*"
#include "experiments/train/nan_policy.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "parallel/state/resume.hpp"
#include "parallel/step/tensor.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/spmd.hpp"
#include "tests/tally.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

const char* const places[] = {"dp2",     "dp2.z1",     "dp2.z2",  "dp1.tp2", "dp1.tp2.sp", "dp1.pp2",
                              "dp1.cp2", "dp2.tp2.z1", "dp2.pp2", "dp2.z3",  "dp2.rep2.z2"};

// The element that one rank overwrites with NaN or Inf, before or during step 3.
struct Injection {
  std::string layout, numerics;
  int rank = 0;
  bool in_weight = true;  // if false: in the output of the embedding, and in step 3 only
  float value = 0;
  std::uint32_t choice = 0;  // selects the tensor and the element
};

Injection drawn(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Injection one{.layout = places[below(std::size(places))], .numerics = below(3) == 0 ? "exact" : "fast"};
  one.value = below(2) == 0 ? NAN : std::numeric_limits<float>::infinity();
  const Layout layout = parse_layout(one.layout, 0);
  one.in_weight = layout.zero < 3 && below(2) == 0;  // under ZeRO-3, layers hold no weights between steps
  do one.rank = static_cast<int>(below(static_cast<std::size_t>(layout.ranks())));
  while (!one.in_weight && stage_of(layout, one.rank) > 0);  // only the first stage has the embedding
  one.choice = static_cast<std::uint32_t>(random());
  return one;
}

// Overwrites an element of the embedding's output in step 3, and records the position that the error must name.
template <class Of>
struct Spoils : Of {
  template <class... Args>
  Spoils(const Injection& one, std::string& place, const bool& is_armed, Args&... args)
      : Of(args...), one(one), place(&place), is_armed(&is_armed) {}
  Tensor pick(const Tensor& rows, Context& context) const override {
    const Tensor picked = Of::pick(rows, context);
    if (!*is_armed || context.step != 2) return picked;
    const std::span<float> values = picked.template values<float>();
    const std::size_t element = one.choice % values.size();
    values[element] = one.value;
    // The expected error text does not include the value, because dropout can turn Inf into NaN before the check.
    *place = fmt::format(" on rank {}\n  element {} of {},", one.rank, element, values.size());
    return picked;
  }
  const Injection one;
  std::string* place;
  const bool* is_armed;
};

void spoil_embedding(test::Run& run, const Injection& one, std::string& place, const bool& is_armed) {
  const Mesh& mesh = run.training.mesh();
  run.training.replace_boundary([&](auto) -> std::unique_ptr<ShardBoundary> {
    if (mesh.tensor().size() == 1) return std::make_unique<Spoils<ShardBoundary>>(one, place, is_armed);
    if (mesh.layout().sequence) return std::make_unique<Spoils<SequenceParallel>>(one, place, is_armed, mesh.tensor());
    return std::make_unique<Spoils<TensorParallel>>(one, place, is_armed, mesh.tensor());
  });
}

// Overwrites an element of a weight with NaN or Inf. Returns the position that the error must name.
std::string spoil_weight(test::Run& run, const Injection& one) {
  const auto& parameters = run.training.parameters();
  const ParameterPointer& p = parameters[one.choice % parameters.size()];
  const std::span<float> values = p->value.values<float>();
  const std::size_t element = (one.choice >> 8) % values.size();
  values[element] = one.value;
  return fmt::format("value of {} is {} on rank {}\n  element {} of {},", p->name, one.value, one.rank, element,
                     values.size());
}

train::NanPolicy policy_named(const std::string& name) {
  train::NanPolicy policy;
  Options options("train");
  policy.declare(options);
  options.set({"on-nan", name, "test", Source::command_line});
  return policy;
}

// The result of a test run: its last two steps and its error. The run trains two steps, saves a checkpoint, trains a third
// step, which can fail, and trains two more steps.
struct Lived {
  test::Seen seen;
  std::string error;
};

Lived live(const Injection& one, bool fails, const std::string& policy_name, test::Run& run,
           const std::filesystem::path& folder) {
  const int rank = run.training.mesh().world().rank();
  Lived lived;
  std::string expected;
  bool is_armed = true;
  if (fails && rank == one.rank && !one.in_weight) spoil_embedding(run, one, expected, is_armed);
  run.steps(2);
  save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training), peers_of(run.training.mesh()));
  if (fails && rank == one.rank && one.in_weight) expected = spoil_weight(run, one);
  train::NanPolicy policy = policy_named(policy_name);
  RunRecord record{folder, Log({.level = "off"}), nullptr};
  if (fails) {
    try {
      run.steps(1);
      throw std::runtime_error("the step did not fail");
    } catch (const NotFinite& error) {
      lived.error = error.what();
      is_armed = false;
      if (error.weights_spoiled != one.in_weight) lived.error += "\nweights_spoiled is wrong";
      policy.handle(error, run.training, record, folder);
    }
  } else if (policy_name == "skip") {
    run.training.skip_step();
  } else {
    const std::int64_t after = run.training.samples() + run.training.options().batch.global;
    resume(run.training, Checkpoint::open(folder, record.log, peers_of(run.training.mesh())));
    run.training.skip_samples_to(after);
  }
  if (lived.error.find(expected) == std::string::npos) lived.error += "\ndoes not say: " + expected;
  run.seen = {};
  lived.seen = run.steps(2).seen;
  return lived;
}

// Returns an error text if the run did not behave as required, otherwise "".
std::string trouble_of(const Injection& one) {
  const Layout layout = parse_layout(one.layout, 0);
  TrainingOptions options = test::options_for(one.numerics.c_str(), layout);
  options.batch.micro = layout.stages() > 1 ? 2 : options.batch.micro;
  const std::string policy = one.in_weight || one.choice % 2 == 0 ? "roll-back" : "skip";
  std::vector<Lived> wanted(static_cast<std::size_t>(layout.ranks())), found = wanted;
  for (const bool fails : {false, true}) {
    const test::TemporaryFolder folder;
    const std::string trouble = test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
      const auto rank = static_cast<std::size_t>(mesh.world().rank());
      test::Run run(options, std::move(mesh), memory);
      (fails ? found : wanted)[rank] = live(one, fails, policy, run, folder);
      return "";
    });
    if (!trouble.empty()) return trouble;
  }
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (found[rank].error != found[0].error) return "the ranks' errors differ: " + found[rank].error;
    if (const std::string differs = difference(wanted[rank].seen, found[rank].seen); !differs.empty())
      return policy + ": " + differs;
  }
  const std::string& error = found[0].error;
  const bool names = error.starts_with(one.in_weight ? "step 3: value of " : "step 3: output of embedding is ") &&
                     error.find(fmt::format("on rank {}\n", one.rank)) != std::string::npos;
  return names ? "" : error;
}

}  // namespace

TEST_CASE("NaN and Inf at random places are named and survived", "[threads]") {
  std::mt19937 random(static_cast<std::uint32_t>(std::stoi(test::environment("SEED", "1"))));
  const int injections = std::stoi(test::environment("INJECTIONS", "10"));
  test::Tally tally;
  for (int i = 0; i < injections; ++i) {
    const Injection one = drawn(random);
    const std::string trouble = trouble_of(one);
    INFO(one.layout << " " << one.numerics << ", " << (one.in_weight ? "a weight" : "an activation") << " of rank "
                    << one.rank << ": " << one.value);
    CHECK(trouble == "");
    tally.add(trouble.empty());
  }
}

TEST_CASE("a run gives up when --on-nan cannot help") {
  HostMemory host;
  test::Run run(test::options_for("fast", {}), Mesh(), host);
  const test::TemporaryFolder folder;
  RunRecord record{folder.path(), Log({.level = "off"}), nullptr};
  const auto refused = [&](train::NanPolicy& policy, bool in_weights, const std::filesystem::path& checkpoints) {
    return test::thrown_by([&] {
      policy.handle({1, ": no", "number", "fix", in_weights}, run.training, record, checkpoints);
    });
  };
  train::NanPolicy abort = policy_named("abort"), skip = policy_named("skip"), roll_back = policy_named("roll-back");
  CHECK(refused(abort, false, "") == "step 1: no\n  number\n  fix");
  CHECK_THAT(refused(skip, true, ""), Catch::Contains("weights are NaN or Inf, so skipping the step does not help"));
  for (int i = 0; i < 10; ++i) CHECK(refused(skip, false, "") == "nothing");
  CHECK(run.training.steps() == 10);
  CHECK_THAT(refused(skip, false, ""), Catch::Contains("10 steps in a row were skipped"));
  skip.stepped();
  CHECK(refused(skip, false, "") == "nothing");
  CHECK_THAT(refused(roll_back, true, ""), Catch::Contains("no checkpoint was saved before"));
  save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training));
  for (int i = 0; i < 3; ++i) CHECK(refused(roll_back, true, folder) == "nothing");
  CHECK_THAT(refused(roll_back, true, folder), Catch::Contains("training went back to step 11 3 times"));
}

}  // namespace chorale
