#include "experiments/train/layout_flags.hpp"

#include <algorithm>

#include "experiments/train/flags.hpp"
#include "src/base/settings.hpp"
#include "tests/refused.hpp"

using namespace chorale;
using Words = std::vector<std::string>;

namespace {

struct Fields {
  explicit Fields(const Words& arguments) {
    flags.declare(options);
    training.declare(options);
    training.declare_parallel(options, flags);
    resolve(options, arguments, {}, {}, {});
  }
  Options options{"chorale test"};
  train::LayoutFlags flags;
  train::Flags training;
};

std::string layout_of(const Words& arguments, std::int64_t world = 8) {
  return to_string(Fields(arguments).flags.layout(world));
}
std::string refused_layout(const Words& arguments) {
  return test::refused([&] { Fields(arguments).flags.choice(8); });
}

}  // namespace

TEST_CASE("a layout is given by a word, by long flags, or by Megatron's") {
  CHECK(layout_of({}) == "dp8");
  CHECK(layout_of({"--layout", "tp2.pp2.z1.sp"}) == "dp2.tp2.pp2.z1.sp");
  CHECK(layout_of({"--tp", "2", "--pp", "2", "--zero", "1", "--sequence-parallel"}) == "dp2.tp2.pp2.z1.sp");
  CHECK(layout_of({"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2", "--use-distributed-optimizer",
                   "--num-virtual-stages-per-pipeline-rank", "3"}) == "dp2.tp2.pp2.z1.v3.interleaved");
  CHECK(layout_of({"--pp", "4", "--schedule", "zb-h1"}) == "dp2.pp4.zb-h1");
  CHECK(layout_of({"--pp", "4", "--schedule", "interleaved"}) == "dp2.pp4.v2.interleaved");
}

TEST_CASE("a long flag overrides its part of the layout word") {
  CHECK(layout_of({"--layout", "tp2.z3", "--tp", "4"}) == "dp2.tp4.z3");
  CHECK(layout_of({"--layout", "z3", "--zero", "0"}) == "dp8");
  CHECK(layout_of({"--layout", "z2", "--use-distributed-optimizer"}) == "dp8.z2");
  CHECK(layout_of({"--layout", "pp2.gpipe", "--schedule", "1f1b"}) == "dp4.pp2");
  CHECK(layout_of({"--layout", "pp2.v2", "--virtual-stages", "1"}) == "dp4.pp2");
}

TEST_CASE("the schedule that a layout word names is kept, like one that a flag names") {
  CHECK(layout_of({"--layout", "pp2", "--virtual-stages", "2"}) == "dp4.pp2.v2.interleaved");
  // Both layouts are refused later, because 1f1b takes one chunk per stage.
  CHECK(layout_of({"--layout", "pp2.1f1b", "--virtual-stages", "2"}) == "dp4.pp2.v2.1f1b");
  CHECK(layout_of({"--layout", "pp2", "--schedule", "1f1b", "--virtual-stages", "2"}) == "dp4.pp2.v2.1f1b");
}

TEST_CASE("--shard-size divides the replicas into groups among which ZeRO shards") {
  CHECK(layout_of({"--zero", "3", "--shard-size", "4"}) == "dp4.rep2.z3");
  CHECK(layout_of({"--layout", "tp2.z1", "--shard-size", "2"}) == "dp2.rep2.tp2.z1");
  CHECK(layout_of({"--layout", "z3", "--shard-size", "8"}) == "dp8.z3");
  CHECK(layout_of({"--layout", "z3", "--shard-size", "1"}) == "dp1.rep8.z3");
  CHECK(layout_of({"--layout", "cp2.z3", "--shard-size", "4"}) == "dp2.rep2.cp2.z3");
  CHECK(layout_of({"--layout", "rep4.z3", "--shard-size", "4"}) == "dp4.rep2.z3");
  CHECK(layout_of({"--rep", "2", "--zero", "2"}) == "dp4.rep2.z2");
  CHECK(layout_of({"--num-distributed-optimizer-instances", "2", "--use-distributed-optimizer"}) == "dp4.rep2.z1");
  CHECK_THAT(refused_layout({"--layout", "z3", "--shard-size", "3"}),
             says("groups of this size do not divide the replicas\n  dp8.z3: shard-size 3, 8 copies of the model\n  try "
                  "--shard-size 1, 2, 4 or 8"));
  CHECK_THAT(refused_layout({"--layout", "dp8", "--shard-size", "4"}),
             says("shard-size = 4 (command line); the ZeRO stage is 0"));
  CHECK_THAT(refused_layout({"--layout", "z3", "--shard-size", "4", "--rep", "4"}), says("dp4.rep2.z3, but rep is 4"));
  CHECK(layout_of({"--zero", "3", "--hpz", "4"}) == "dp4.rep2.z3.hpz");
  CHECK(layout_of({"--layout", "rep4.z3.hpz", "--hpz", "1"}) == "dp1.rep8.z3.hpz");
  CHECK_THAT(refused_layout({"--layout", "z3", "--hpz", "3"}), says("hpz 3, 8 copies") && says("try --hpz 1, 2, 4 or 8"));
  CHECK_THAT(refused_layout({"--layout", "z2", "--hpz", "4"}), says("hpz = 4 (command line); the ZeRO stage is 2"));
  CHECK_THAT(refused_layout({"--layout", "z3", "--hpz", "4", "--shard-size", "2"}), says("shard-size is 2, but under hpz"));
  CHECK_THAT(refused_layout({"--layout", "rep2.z3.hpz", "--shard-size", "2"}), says("shard-size is 2, but under hpz"));
  CHECK_THAT(refused_layout({"--layout", "z3", "--rep", "3"}), says("world 8 / (repeat 3)"));
}

TEST_CASE("--order says which axes lie inside which") {
  CHECK(layout_of({"--layout", "tp2.pp2", "--order", "tp,dp"}) == "dp2.tp2.pp2.pp-tp-dp");
  CHECK(layout_of({"--layout", "tp2.tp-dp", "--order", "dp,tp"}) == "dp4.tp2");
  CHECK(layout_of({"--layout", "tp2.tp-dp", "--order", "auto"}) == "dp4.tp2.tp-dp");
  CHECK(layout_of({"--layout", "tp2"}) == "dp4.tp2");
  CHECK_THAT(refused_layout({"--order", "pp,xp"}), says("no axis is called \"xp\"") && says("\"pp,xp\""));
  CHECK_THAT(refused_layout({"--order", "pp,dp,pp"}), says("names pp twice"));
  CHECK_THAT(refused_layout({"--order", "tp"}), says("one axis alone has no order") && says("tp,dp"));
}

TEST_CASE("the config file that a run keeps gives the same layout") {
  Fields f({"--layout", "tp2.z3", "--pp", "2", "--backend", "tp=shm,mpi"});
  Options options("chorale test");
  train::LayoutFlags again;
  train::Flags training;
  again.declare(options);
  training.declare(options);
  training.declare_parallel(options, again);
  for (const Option& option : f.options.all())
    if (!option.is_source) options.set({option.name, option.text, "a file"});
  CHECK(again.layout(8) == f.flags.layout(8));
  CHECK(again.choice(8).backends == f.flags.choice(8).backends);
}

TEST_CASE("backends and algorithms are chosen for all axes or for each axis") {
  const auto choice = [](const Words& arguments) { return Fields(arguments).flags.choice(8); };
  CHECK((choice_for(choice({}).backends, "tp") == "auto" && choice_for(choice({}).algorithms, "dp") == "auto"));
  CHECK(choice_for(choice({"--backend", "shm"}).backends, "pp") == "shm");
  const auto mixed = choice({"--backend", "tp=shm,dp=ucx", "--algorithm", "dp=ring,direct"});
  CHECK((choice_for(mixed.backends, "tp") == "shm" && choice_for(mixed.backends, "dp") == "ucx" &&
         choice_for(mixed.backends, "pp") == "auto"));
  CHECK((choice_for(mixed.algorithms, "dp") == "ring" && choice_for(mixed.algorithms, "tp") == "direct"));
}

TEST_CASE("the reducer and the bucket size are passed to the training") {
  TrainingOptions o = Fields({"--reducer", "naive"}).training.on({});
  CHECK(o.replicas.reducer == ReducerKind::naive);
  o = Fields({"--bucket-size", "1M"}).training.on({});
  CHECK((o.replicas.reducer == ReducerKind::bucketed && o.replicas.bucket_bytes == 1 << 20));
}

TEST_CASE("unknown axes, backends and algorithms are refused with the nearest name") {
  CHECK_THAT(refused_layout({"--backend", "shn"}), says("unknown backend \"shn\"") && says("did you mean shm?"));
  CHECK_THAT(refused_layout({"--backend", "tpp=shm"}),
             says("unknown axis \"tpp\"") && says("\"tpp=shm\"") && says("did you mean tp?"));
  CHECK_THAT(refused_layout({"--backend", "threads"}), says("unknown backend \"threads\""));
  CHECK_THAT(refused_layout({"--algorithm", "dp=rign"}), says("unknown algorithm \"rign\"") && says("did you mean ring?"));
  CHECK_THAT(refused_layout({"--algorithm", "dp=ring,dp=direct"}), says("two values for the axis dp"));
  CHECK_THAT(refused_layout({"--backend", "shm,ucx"}), says("two values for all axes"));
  CHECK_THAT(refused_layout({"--zero", "0", "--use-distributed-optimizer"}), says("the ZeRO options contradict each other"));
  CHECK_THAT(refused_layout({"--zero", "4"}), says("zero takes one of auto, 0, 1, 2, 3"));
  CHECK_THAT(refused_layout({"--layout", "z2", "--bucket-size", "1M"}),
             says("bucket-size = 1048576 (command line); the ZeRO stage is 2"));
  CHECK_THAT(refused_layout({"--tp", "3"}), says("world 8 / (tensor 3)"));
  CHECK_THAT(refused_layout({"--layout", "dp2.xp4"}), says("not a part of a layout"));
}
