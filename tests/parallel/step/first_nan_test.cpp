// Tests the search for the first NaN. If a NaN occurs on one of several ranks, all ranks must stop with the same error,
// which names the origin of the NaN.
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

// After the first step, rank `spoiled` sets all elements of the parameter to `value`. Returns the error of every rank.
std::vector<std::string> said(const char* word, const char* numerics, int spoiled, const std::string& parameter,
                              float value) {
  const Layout layout = parse_layout(word, 0);
  TrainingOptions options = test::options_for(numerics, layout);
  options.batch.micro = 2;
  std::vector<std::string> all(static_cast<std::size_t>(layout.ranks()), "nothing");
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int rank = mesh.world().rank();
          test::Run run(options, std::move(mesh), memory);
          run.steps(1);
          bool found = rank != spoiled;
          for (const ParameterPointer& p : run.training.parameters())
            if (rank == spoiled && p->name == parameter) {
              found = true;
              for (float& x : p->value.values<float>()) x = value;
            }
          all[static_cast<std::size_t>(rank)] = test::thrown_by([&] { run.steps(1); });
          return found ? "" : "the rank does not have " + parameter;
        }) == "");
  return all;
}

void named(const char* word, int spoiled, const std::string& parameter, float value, const std::string& what) {
  for (const char* numerics : {"fast", "exact"}) {
    const std::vector<std::string> all = said(word, numerics, spoiled, parameter, value);
    INFO(word << " " << numerics << ", rank " << spoiled << ": " << parameter << " = " << value);
    const std::string layer = parameter.substr(0, parameter.rfind('.'));
    // In exact numerics, the error names the sum. The sum's name begins with the name of the layer.
    const bool exact = std::string(numerics) == "exact" && what.starts_with("partial");
    for (const std::string& words : all) {
      CHECK_THAT(words, Catch::Contains("step 2: " + (exact ? layer : what)));
      CHECK_THAT(words, Catch::Contains(fmt::format("on rank {}\n", spoiled)));
      CHECK(words == all[0]);
    }
  }
}

TEST_CASE("if one rank gets a NaN, the error on every rank names its origin", "[threads]") {
  for (const char* word : {"dp2", "dp1.tp2", "dp1.tp2.sp", "dp2.z1"})
    for (const int spoiled : {0, 1})
      for (const std::string layer : {"block.1.mlp.up", "block.2.mlp.down"})
        named(word, spoiled, layer + ".weight", NAN, "value of " + layer + ".weight is nan");
  for (const char* word : {"dp1.pp2", "dp2.pp2", "dp1.tp2.pp2"})
    for (const auto& [rank, layer] : {std::pair{0, "block.0.mlp.down"}, {1, "block.2.mlp.up"}}) {
      const int spoiled = rank * static_cast<int>(parse_layout(word, 0).ranks() / 2);
      const std::string name = layer;
      named(word, spoiled, name + ".weight", NAN, "value of " + name + ".weight is nan");
    }
}

// The weights are finite, but the output of their layer overflows. The error must name this layer, not the next layer.
TEST_CASE("if an output overflows on one rank, the error on every rank names the layer", "[threads]") {
  const float much = 3e38f;
  for (const char* word : {"dp2", "dp1.tp2", "dp1.tp2.sp"})
    for (const int spoiled : {0, 1})
      for (const auto& [layer, what] :
           {std::pair{"block.1.mlp.up", "output of"}, {"block.2.mlp.down", "partial output of"}}) {
        const std::string name = layer;
        named(word, spoiled, name + ".weight", much, fmt::format("{} {} is", what, name));
      }
  for (const char* word : {"dp1.pp2", "dp1.pp2.interleaved.v2", "dp1.pp2.zb-h1"}) {
    named(word, 0, "block.0.mlp.down.weight", much, "partial output of block.0.mlp.down is");
    named(word, 1, "block.3.mlp.up.weight", much, "output of block.3.mlp.up is");
  }
}

}  // namespace
}  // namespace chorale
