// Tests <chorale/train.hpp>, with which user programs train models.
#include <unistd.h>

#include <chorale/train.hpp>

#include "tests/parallel/small_training.hpp"
#include "tests/refused.hpp"
#include "tests/spmd.hpp"

namespace chorale {
namespace {

constexpr int steps = 3;

TrainingOptions exact_options() {
  TrainingOptions options = test::small("exact");
  options.batch = {.global = 24, .micro = 0};
  return options;
}

std::vector<double> losses_of(const TrainingOptions& options, const ReadSamples& read) {
  HostMemory host;
  SystemClock clock;
  TrainingOptions whole = options;
  whole.batch.micro = whole.batch.global;
  Training training(whole, host, clock);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(training.step(read).loss);
  losses.push_back(training.evaluate(read, 5));
  return losses;
}

// Layouts for this number of ranks, each with an algorithm.
std::vector<std::pair<std::string, std::string>> arguments_for(int ranks) {
  const std::string n = std::to_string(ranks);
  std::vector<std::pair<std::string, std::string>> all{{"", "auto"}, {"", "ring"}, {"z3", "auto"}};
  if (4 % ranks == 0) all.emplace_back("tp" + n, "direct");
  if (ranks == 2) all.insert(all.end(), {{"pp2", "auto"}, {"cp2", "auto"}});
  if (ranks == 4) all.insert(all.end(), {{"tp2.z1", "ring"}, {"tp2.pp2", "auto"}});
  return all;
}

TEST_CASE("a trainer has the losses of one rank, and the plan's memory, calls and bytes, on any layout", "[spmd]") {
  const TrainingOptions options = exact_options();
  const auto language = synthetic_language(options.shape.vocabulary, 7);
  const ReadSamples read = in_order(*language, options.shape.sequence);
  const std::vector<double> expected = losses_of(options, read);
  const int ranks = test::world().size();
  for (const auto& [word, algorithm] : arguments_for(ranks)) {
    SystemClock clock;
    Trainer trainer(options, word, test::world(), clock, "auto", algorithm);
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(trainer.step(read).loss);
    const RankPlan measured = trainer.measured();
    losses.push_back(trainer.evaluate(read, 5));
    INFO(trainer.layout());
    REQUIRE_ALL(losses == expected);
    REQUIRE_ALL((trainer.steps() == steps && trainer.samples() == steps * options.batch.global));
    const RankPlan plan = plan_step(options, trainer.layout(), ranks, test::world().rank(), "auto", algorithm);
    REQUIRE_ALL(measured.parameters == plan.parameters);
    REQUIRE_ALL(measured.held_bytes == plan.held_bytes);
    REQUIRE_ALL(measured.peak_bytes <= plan.peak_bytes);
    REQUIRE_ALL((word.starts_with("pp") || word.ends_with("pp2") || measured.peak_bytes == plan.peak_bytes));
    REQUIRE_ALL(measured.axes.size() == plan.axes.size());
    for (const auto& [axis, account] : plan.axes)
      for (std::size_t o = 0; o < operations; ++o) REQUIRE_ALL(measured.axes.at(axis).entries[o] == account.entries[o]);
  }
}

TEST_CASE("a trainer continues the checkpoint of another layout with the same bits", "[spmd]") {
  const TrainingOptions options = exact_options();
  const auto language = synthetic_language(options.shape.vocabulary, 7);
  const ReadSamples read = in_order(*language, options.shape.sequence);
  const std::vector<double> expected = losses_of(options, read);
  // The ranks of one mpirun have one parent, so they agree on the folder's name.
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("chorale-trainer-{}", getppid());
  SystemClock clock;
  {
    Trainer first(options, "z3", test::world(), clock);
    first.step(read);
    first.save(folder.string());
  }
  Trainer second(options, 4 % test::world().size() == 0 ? "tp" + std::to_string(test::world().size()) : "", test::world(),
                 clock);
  second.load(folder.string());
  REQUIRE_ALL((second.steps() == 1 && second.samples() == options.batch.global));
  REQUIRE_ALL(second.step(read).loss == expected[1]);
  TrainingOptions other = options;
  other.shape.layers = 3;
  Trainer third(other, "", test::world(), clock);
  REQUIRE_ALL_THROWS(third.load(folder.string()), "layers");
  if (test::world().rank() == 0) std::filesystem::remove_all(folder);
}

TEST_CASE("a local model has the bits of a training on one rank, in parts of any size, with clipping and dropout") {
  for (const char* numerics : {"exact", "fast"}) {
    TrainingOptions options = exact_options();
    options.numerics = named<NumericsKind>(numerics);
    options.optimizer.clip = 0.5;
    const auto language = synthetic_language(options.shape.vocabulary, 7);
    const ReadSamples read = in_order(*language, options.shape.sequence);
    const std::vector<double> expected = losses_of(options, read);
    HostMemory host;
    Ledger ledger;
    Allocator memory(host, ledger);
    LocalModel model(options, memory);
    for (int i = 0; i < steps; ++i) {
      model.begin();
      for (const auto& [first, samples] : {std::pair{0, 5}, {5, 18}, {23, 1}}) model.pass(read, first, samples);
      const double loss = model.update();
      INFO(numerics << ", step " << i);
      if (options.numerics == NumericsKind::exact)
        CHECK(loss == expected[static_cast<std::size_t>(i)]);
      else
        CHECK_THAT(loss, Catch::Matchers::WithinRel(expected[static_cast<std::size_t>(i)], 1e-5));
    }
    CHECK_THROWS_WITH(model.pass(read, 20, 5), says("does not have the samples 20 to 24"));
  }
}

TEST_CASE("what a trainer, a plan or a local model cannot do is refused") {
  TrainingOptions options = exact_options();
  CHECK(test::refused([&] { plan_step(options, "tp3", 4, 0); }) != "accepted");
  CHECK(test::refused([&] { plan_step(options, "dp2", 2, 2); }).starts_with("there is no such rank\n  rank 2 of 2 ranks"));
  CHECK(test::refused([&] { plan_step(options, "dq2", 2, 0); }) != "accepted");
  CHECK(test::refused([&] { plan_step(options, "dp2", 2, 0, "sm"); }).starts_with("no backend \"sm\""));
  CHECK(
      test::refused([&] { plan_step(options, "dp2", 2, 0, "shm", "rign"); }).starts_with("no algorithm is called \"rign\""));
  HostMemory host;
  Ledger ledger;
  Allocator memory(host, ledger);
  options.shape.experts = {.count = 4, .chosen = 2, .ffn = 32};
  CHECK(test::refused([&] { LocalModel(options, memory); }).starts_with("a local model has no experts\n  4 experts"));
  options.shape.experts = {};
  options.batch.global = 0;
  CHECK(test::refused([&] { LocalModel(options, memory); }).starts_with("the batch has no samples"));
}

}  // namespace
}  // namespace chorale
