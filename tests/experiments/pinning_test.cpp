#include "experiments/common/pinning.hpp"

#include <nlohmann/json.hpp>

#include "src/base/text.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

Pinning pinning_of(const char* word, const char* hosts) {
  return {.layout = parse_layout(word, 0), .topology = Topology::parse(hosts, 0), .places = {}};
}

}  // namespace

TEST_CASE("the drawing shows who sits where and which axes cross hosts") {
  CHECK(drawing_of(pinning_of("dp2.tp2", "2,2")) == R"(dp2.tp2: 4 ranks on 2 hosts; from the outermost axis: dp,tp

 n0 │ 0 dp0 tp0 │ 1 dp0 tp1
 n1 │ 2 dp1 tp0 │ 3 dp1 tp1

 dp   crosses hosts     0,2  1,3
 tp   stays on hosts    0-1  2-3
)");
  Pinning uneven = pinning_of("dp3.tp2.tp-dp", "2,3,1");
  uneven.places = {"socket 0, cores 0-1", "socket 0, cores 2-3", "core 0", "core 1", "core 2", "core 0, GPU 0"};
  CHECK(drawing_of(uneven) == R"(dp3.tp2.tp-dp: 6 ranks on 3 hosts; from the outermost axis: tp,dp

 n0 │ 0 tp0 dp0           │ 1 tp0 dp1
    │ socket 0, cores 0-1 │ socket 0, cores 2-3
 n1 │ 2 tp0 dp2           │ 3 tp1 dp0           │ 4 tp1 dp1
    │ core 0              │ core 1              │ core 2
 n2 │ 5 tp1 dp2
    │ core 0, GPU 0

 tp   crosses hosts     0,3  1,4  2,5
 dp   crosses hosts     0-2  3-5
)");
}

TEST_CASE("a drawing has at most 80 columns") {
  for (const auto& [word, hosts] : {std::pair{"dp4.tp2.pp2", "4,4,4,4"}, {"dp16.tp8.pp4", "256,256"}, {"dp1", "1"}}) {
    Pinning pinning = pinning_of(word, hosts);
    pinning.topology.names[0] = "a-host-with-a-rather-long-name.example.org";
    for (const bool placed : {false, true}) {
      if (placed) pinning.places.assign(pinning.topology.host_of.size(), "sockets 0-1, cores 0-63, GPU 3");
      for (const std::string& line : split(drawing_of(pinning), '\n')) REQUIRE(first_columns(line, 80) == line);
    }
  }
}

TEST_CASE("the same pinning as JSON") {
  const auto json = json_of(pinning_of("dp2.tp2", "2,2"));
  CHECK(json["ranks"][3]["coordinates"] == nlohmann::ordered_json{{"dp", 1}, {"tp", 1}});
  CHECK(json["ranks"][3]["host"] == "n1");
  CHECK(json["axes"][0]["crossing"] == 2);
  CHECK(json["axes"][1]["groups"] == nlohmann::ordered_json{{0, 1}, {2, 3}});
}
