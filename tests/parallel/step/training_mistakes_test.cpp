// Tests training on one rank. Errors must name the cause, and invalid options must be refused.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/parallel/small_training.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

void spoil(SmallRun& run, const std::string& parameter) {
  for (const ParameterPointer& p : run.training.parameters())
    if (p->name == parameter)
      visit_floating(p->value.dtype(),
                     [&]<class T>(Type<T>) { p->value.values<T>()[5] = T(std::numeric_limits<float>::quiet_NaN()); });
}

}  // namespace

TEST_CASE("the error for a NaN names its origin") {
  for (const auto& [numerics, compute] : {std::tuple{"fast", DType::f32}, {"fast", DType::bf16}, {"exact", DType::f32}})
    for (const Recompute recompute : {Recompute::none, Recompute::full})
      for (const std::string layer : {"block.1.mlp.up", "block.1.mlp.down", "block.1.attention.qkv", "block.1.mlp.router",
                                      "block.1.mlp.expert.1.down"}) {
        TrainingOptions options = small(numerics, compute);
        options.recompute = recompute;
        if (layer.find("mlp.router") != std::string::npos || layer.find("expert") != std::string::npos)
          options.shape.experts = {.count = 2, .chosen = 2, .ffn = 16};
        SmallRun run(options);
        run.steps(2);
        spoil(run, layer + ".weight");
        const auto before = run.state();
        try {
          run.steps(1);
          FAIL("the NaN was not noticed");
        } catch (const Error& error) {
          const std::string what = error.what();
          INFO(numerics << " " << name_of(compute) << " " << layer << ": " << what);
          CHECK(what.find("step 3") != std::string::npos);
          CHECK(what.find(layer) != std::string::npos);
        }
        if (compute == DType::bf16) CHECK(run.state() == before);  // the failed step has not changed the master weights
      }
}

TEST_CASE("an evaluation with NaN throws in exact numerics and returns NaN in fast numerics") {
  SmallRun exact(small("exact")), fast(small("fast"));
  for (SmallRun* run : {&exact, &fast}) spoil(*run, "block.1.mlp.down.weight");
  CHECK_THROWS_AS(exact.training.evaluate(exact.read(), 8), Error);
  CHECK(std::isnan(fast.training.evaluate(fast.read(), 8)));
}

TEST_CASE("contradicting options are refused") {
  TrainingOptions o = small();
  o.batch.micro = 3;
  CHECK(refused([&] { SmallRun run(o); }).find("global-batch-size 8 is not a multiple of micro-batch-size 3") !=
        std::string::npos);
  CHECK(refused([] { SmallRun run(small("exact", DType::bf16)); }).find("exact numerics compute in f32") !=
        std::string::npos);
}

TEST_CASE("a checkpoint of another shape, numerics, seed or, in exact numerics, global batch is refused") {
  const TemporaryFolder folder;
  Log log({.level = "off"});
  SmallRun run(small());
  save_checkpoint(folder.path(), metadata_of(run.training, ""), state_of(run.training));
  const auto refused = [&](const TrainingOptions& options) -> std::string {
    SmallRun other(options);
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

  const TemporaryFolder elsewhere;
  SmallRun exact(small("exact"));
  save_checkpoint(elsewhere.path(), metadata_of(exact.training, ""), state_of(exact.training));
  TrainingOptions batch = small("exact");
  batch.batch = {.global = 4, .micro = 4};
  SmallRun other(batch);
  CHECK_THAT(test::refused([&] { resume(other.training, Checkpoint::open(elsewhere.path(), log)); }),
             says("another global batch") && says("its global batch is 8, this run's 4"));

  const TemporaryFolder older;  // a checkpoint from before exact numerics had a version
  Metadata without = metadata_of(exact.training, "");
  without.blocks.erase("version");
  save_checkpoint(older.path(), without, state_of(exact.training));
  SmallRun newer(small("exact"));
  CHECK_THAT(test::refused([&] { resume(newer.training, Checkpoint::open(older.path(), log)); }),
             says("an older version of exact numerics") && says("version 1, this program's 2") && says("--load-hf"));
}

}  // namespace chorale::test
