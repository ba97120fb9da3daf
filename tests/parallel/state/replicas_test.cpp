// Tests the comparison of replicas. A flipped bit in one rank's copy of the state must be detected, and the error on all
// ranks must name this rank.
//
//   FLIPS=100 SEED=7 build/tests_run "a flipped bit in one replica*"
#include "parallel/state/replicas.hpp"

#include <random>

#include "parallel/state/resume.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/spmd.hpp"
#include "tests/tally.hpp"

namespace chorale {
namespace {

struct Flip {
  std::string layout;
  int rank = 0;
  std::uint32_t choice = 0;  // chooses the tensor and the bit
};

void flip(const Slice& data, std::uint32_t choice) {
  auto* const bytes = static_cast<unsigned char*>(data.data);
  bytes[choice / 8 % static_cast<std::size_t>(data.bytes())] ^= static_cast<unsigned char>(1u << choice % 8);
}

// Flips a bit of a weight, of a moment or, under ZeRO-1, of a value that another rank updates. Returns the error of every
// rank.
std::vector<std::string> said_after(const Flip& one, std::string& tensor) {
  const Layout layout = parse_layout(one.layout, 0);
  std::vector<std::string> said(static_cast<std::size_t>(layout.ranks()));
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int rank = mesh.world().rank();
          TrainingOptions options = test::options_for("fast", layout);
          test::Run run(options, std::move(mesh), memory);
          run.steps(1);
          require_equal_replicas(run.training);
          if (rank == one.rank && layout.zero > 0) {
            const auto& parameters = run.training.parameters();
            const ParameterPointer& p = parameters[one.choice % parameters.size()];
            tensor = "value of " + p->name;
            flip(p->value.slice(), one.choice >> 6);
          } else if (rank == one.rank) {
            const std::vector<StateTensor> state = state_of(run.training);
            const StateTensor& t = state[one.choice % state.size()];
            tensor = t.name;
            flip(t.data, one.choice >> 6);
          }
          said[static_cast<std::size_t>(rank)] = test::thrown_by([&] { require_equal_replicas(run.training); });
          return "";
        }) == "");
  return said;
}

}  // namespace

TEST_CASE("a flipped bit in one replica is found and its rank is named", "[threads]") {
  std::mt19937 random(static_cast<std::uint32_t>(std::stoi(test::environment("SEED", "1"))));
  const int flips = std::stoi(test::environment("FLIPS", "10"));
  const char* const layouts[] = {"dp3", "dp2", "dp3.z1", "dp2.tp2", "dp3.pp2"};
  test::Tally tally;
  for (int i = 0; i < flips; ++i) {
    Flip one{.layout = layouts[static_cast<std::size_t>(i) % std::size(layouts)]};
    const Layout layout = parse_layout(one.layout, 0);
    one.rank = static_cast<int>(random() % static_cast<std::uint32_t>(layout.ranks()));
    one.choice = static_cast<std::uint32_t>(random());
    std::string tensor;
    const std::vector<std::string> said = said_after(one, tensor);
    INFO(one.layout << ", rank " << one.rank << ", " << tensor << ": " << said[0]);
    bool named = said[0].find(tensor) != std::string::npos;  // for a weight, the error can say "value of NAME"
    for (const std::string& words : said) named &= words == said[0];
    const bool has_majority = layout.replicas() > 2;
    if (has_majority) named &= said[0].find(fmt::format("\n  rank {} differs from rank", one.rank)) != std::string::npos;
    if (!has_majority) {
      const std::string line = said[0].substr(std::min(said[0].find('\n'), said[0].size()));
      named &= line.find(fmt::format(" {}", one.rank)) != std::string::npos && line.find(" differ") != std::string::npos;
    }
    CHECK(named);
    tally.add(named);
  }
}

TEST_CASE("a flipped bit in a weight is found some steps later, too", "[threads]") {
  const Layout layout = parse_layout("dp3", 0);
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          const int rank = mesh.world().rank();
          test::Run run(test::options_for("fast", layout), std::move(mesh), memory);
          run.steps(1);
          if (rank == 2) flip(run.training.parameters()[3]->value.slice(), 8);
          run.steps(3);
          const std::string said = test::thrown_by([&] { require_equal_replicas(run.training); });
          return said.find("after step 4") != std::string::npos && said.find("rank 2 differs") != std::string::npos ? ""
                                                                                                                    : said;
        }) == "");
}

TEST_CASE("replicas of sixteen layouts are equal", "[threads]") {
  for (const char* word :
       {"dp1", "dp4", "dp2.tp2", "dp2.tp2.sp", "dp2.pp2", "dp2.pp2.v2", "dp2.z1", "dp2.z2", "dp2.z3", "dp2.tp2.z1",
        "dp2.cp2", "dp1.cp2.tp2", "dp2.tp2.pp2.z1", "dp2.rep2.z3", "dp2.pp2.zb-h1", "dp1.tp3"})
    for (const char* numerics : {"fast", "exact"}) {
      const Layout layout = parse_layout(word, 0);
      INFO(word << " " << numerics);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(test::options_for(numerics, layout), std::move(mesh), memory);
              run.steps(2);
              require_equal_replicas(run.training);
              return "";
            }) == "");
    }
}

}  // namespace chorale
