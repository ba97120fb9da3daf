// Tests resumed runs. In exact numerics, each of ten layouts loads the checkpoints of all ten layouts, and results must be
// bit-identical to an uninterrupted run. In fast numerics, 16-bit runs that resume in the layout that saved the checkpoint
// must be bit-identical, too.
#include "parallel/state/resume.hpp"

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

const char* const layouts[] = {"dp1",
                               "dp2.tp2",
                               "dp4.z1",
                               "dp4.z3",
                               "dp2.pp2.z2",
                               "dp1.tp3.sp",
                               "dp1.pp2.v2",
                               "dp2.tp2.pp2.z1.sp",
                               "dp2.tp2.pp2.z3",
                               "dp1.tp2.pp4",
                               "dp2.tp2.pp2.z1.tp-dp-pp"};

std::string save_from(const TrainingOptions& options, Mesh mesh, Memory& memory, const std::filesystem::path& folder) {
  test::Run run(options, std::move(mesh), memory);
  run.steps(2);
  save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training), peers_of(run.training.mesh()));
  return "";
}

test::Seen resume_from(const TrainingOptions& options, Mesh mesh, Memory& memory, const std::filesystem::path& folder) {
  Log log({.level = "off"});
  test::Run run(options, std::move(mesh), memory);
  resume(run.training, Checkpoint::open(folder, log, peers_of(run.training.mesh())));
  return run.steps(2).seen;
}

// Trains four steps and returns the results of the last two steps.
test::Seen later_half(const TrainingOptions& options, Mesh mesh, Memory& memory) {
  test::Seen seen = test::Run(options, std::move(mesh), memory).steps(4).seen;
  seen.forget(2);
  return seen;
}

TEST_CASE("eleven layouts resume each other's checkpoints with the same bits", "[threads]") {
  HostMemory host;
  const test::Seen expected = later_half(test::options_for("exact", {}), Mesh(), host);
  test::Sample fifth(5);
  for (const char* saver : layouts) {
    const test::TemporaryFolder folder;
    const Layout from = parse_layout(saver, 0);
    INFO("saved by " << saver);
    REQUIRE(test::on_thread_mesh(from, [&](Mesh mesh, Memory& memory) {
              return save_from(test::options_for("exact", from), std::move(mesh), memory, folder);
            }) == "");
    for (const char* loader : layouts) {
      if (!fifth.takes()) continue;
      const Layout to = parse_layout(loader, 0);
      INFO("loaded by " << loader);
      CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
              return difference(expected, resume_from(test::options_for("exact", to), std::move(mesh), memory, folder));
            }) == "");
    }
  }
}

TEST_CASE("layouts resume each other's checkpoints of a model with experts", "[threads]") {
  const auto with_experts = [](const Layout& layout) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape = test::small_moe();
    return options;
  };
  HostMemory host;
  const test::Seen expected = later_half(with_experts({}), Mesh(), host);
  for (const auto& [saver, loader] :
       {std::pair{"dp2.tp2.z1", "dp1.pp2"}, {"dp4.z3", "dp1.tp3.sp"}, {"dp1.tp2.pp2", "dp2.z2"}}) {
    const test::TemporaryFolder folder;
    const Layout from = parse_layout(saver, 0), to = parse_layout(loader, 0);
    INFO(saver << " to " << loader);
    REQUIRE(test::on_thread_mesh(from, [&](Mesh mesh, Memory& memory) {
              return save_from(with_experts(from), std::move(mesh), memory, folder);
            }) == "");
    CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
            return difference(expected, resume_from(with_experts(to), std::move(mesh), memory, folder));
          }) == "");
  }
}

// The checkpoint of a 16-bit run stores the f32 master weights, if the run has master weights. For f16, the checkpoint also
// stores the loss scale.
TEST_CASE("runs with their state in a file resume each other's checkpoints, and those of runs without", "[threads]") {
  HostMemory host;
  const test::Seen expected = later_half(test::options_for("exact", {}), Mesh(), host);
  const test::TemporaryFolder tier;
  const auto options_of = [&](const Layout& layout, bool offloaded) {
    TrainingOptions options = test::options_for("exact", layout);
    if (offloaded) options.offload = {true, true, true, tier.path().string(), 4096};
    return options;
  };
  const std::pair<const char*, bool> runs[] = {{"dp1.z3", true}, {"dp2.z3", true}, {"dp2.z3", false}};
  for (const auto& [saver, offloaded] : runs) {
    const test::TemporaryFolder folder;
    const Layout from = parse_layout(saver, 0);
    INFO("saved by " << saver << (offloaded ? ", in a file" : ""));
    REQUIRE(test::on_thread_mesh(from, [&, offloaded = offloaded](Mesh mesh, Memory& memory) {
              return save_from(options_of(from, offloaded), std::move(mesh), memory, folder);
            }) == "");
    for (const auto& [loader, loads_to_file] : runs) {
      const Layout to = parse_layout(loader, 0);
      INFO("loaded by " << loader << (loads_to_file ? ", in a file" : ""));
      CHECK(test::on_thread_mesh(to, [&, loads_to_file = loads_to_file](Mesh mesh, Memory& memory) {
              return difference(expected, resume_from(options_of(to, loads_to_file), std::move(mesh), memory, folder));
            }) == "");
    }
  }
}

TEST_CASE("16-bit runs resume with the same bits if loaded in the layout that saved the checkpoint", "[threads]") {
  test::Sample third(3);
  for (const auto& [compute, masters] : {std::pair{DType::bf16, true}, {DType::bf16, false}, {DType::f16, true}})
    for (const char* word : {"dp2.tp2.pp2.z1.sp", "dp3.z3", "dp2.pp2.z2", "dp1.tp3"}) {
      if (!third.takes()) continue;
      const test::TemporaryFolder folder;
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = test::options_for("fast", layout);
      options.compute = compute;
      options.optimizer.masters = masters;
      if (compute == DType::f16)
        options.scaler = {.dynamic = true, .scale = 0x1p12, .growth_interval = 1, .hysteresis = 1, .patience = 1};
      INFO(word << " " << name_of(compute) << (masters ? "" : " without masters"));
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return save_from(options, std::move(mesh), memory, folder);
            }) == "");
      std::vector<test::Seen> expected(static_cast<std::size_t>(layout.ranks()));
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              const auto rank = static_cast<std::size_t>(mesh.world().rank());
              expected[rank] = later_half(options, std::move(mesh), memory);
              return std::string();
            }) == "");
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              const auto rank = static_cast<std::size_t>(mesh.world().rank());
              return difference(expected[rank], resume_from(options, std::move(mesh), memory, folder));
            }) == "");
    }
}

}  // namespace
}  // namespace chorale
