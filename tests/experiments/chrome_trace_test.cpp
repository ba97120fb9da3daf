// Tests the writer of Chrome trace files. A trace file must be valid JSON for any event names. Adjacent time spans must stay
// adjacent, and omitted events must be reported.
#include "experiments/train/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

namespace chorale::train {
namespace {

using nlohmann::json;

std::vector<json> events_of(const std::vector<RankTrace>& ranks, const std::string& phase) {
  std::vector<json> found;
  const json trace = json::parse(chrome_trace(ranks, "run"));
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

TEST_CASE("any rank name is kept in the JSON") {
  const std::string name = "rank \"0\"\n</script>\\";
  const auto named = events_of({{.name = name}}, "M");
  REQUIRE(!named.empty());
  CHECK(named[0]["args"]["name"] == name);
}

TEST_CASE("omitted events are reported by rank") {
  const json facts = json::parse(chrome_trace({{.name = "rank 0"}, {.name = "rank 1", .left_out = 17}}, "run"))["otherData"];
  CHECK(facts["left_out"] == json{{"rank 1", 17}});
}

TEST_CASE("messages are on the pipeline's track, whatever the name of their axis; collectives are on their axis's track") {
  RankTrace rank{.name = "rank 0"};
  rank.calls.push_back({.axis = "layers", .operation = "send", .message = true, .started = true});
  rank.calls.push_back({.axis = "pp", .operation = "all_reduce"});
  std::vector<std::string> tracks;
  for (const json& event : events_of({rank}, "M"))
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
  CHECK(tracks == std::vector<std::string>{"steps", "passes", "pipeline", "communication pp"});
  const auto waits = events_of({rank}, "X");
  REQUIRE(waits.size() == 2);
  for (const json& wait : waits) CHECK(wait["cat"] == (wait["name"] == "wait send" ? "pipeline" : "communication"));
}

TEST_CASE("adjacent spans stay adjacent when written in microseconds") {
  RankTrace rank{.name = "rank 0"};
  const double origin = 81234.123456789;
  for (int i = 0; i < 200; ++i)
    rank.spans.push_back({Trace::Kind::forward, 1, i, 0, origin + i * 1.2345e-6, origin + (i + 1) * 1.2345e-6});
  const auto events = events_of({rank}, "X");
  REQUIRE(events.size() == 200);
  CHECK(events[0]["ts"] == 0);
  const auto nanoseconds = [](const json& number) { return std::llround(number.get<double>() * 1e3); };
  for (std::size_t i = 1; i < events.size(); ++i)
    CHECK(nanoseconds(events[i - 1]["ts"]) + nanoseconds(events[i - 1]["dur"]) == nanoseconds(events[i]["ts"]));
}

TEST_CASE("a call in flight is one event; its start and the wait for it are separate events") {
  RankTrace rank{.name = "rank 0"};
  rank.calls.push_back({.step = 3,
                        .axis = "dp",
                        .operation = "all_reduce",
                        .algorithm = "ring",
                        .backend = "shm",
                        .dtype = "f32",
                        .bytes = 64,
                        .started = true,
                        .begins = 1.0,
                        .launched = 1.5,
                        .waited = 3.0,
                        .ends = 4.0});
  const auto waits = events_of({rank}, "X"), begins = events_of({rank}, "b"), ends = events_of({rank}, "e");
  REQUIRE(waits.size() == 2);
  CHECK(waits[0]["name"] == "start all_reduce");
  CHECK(waits[0]["dur"] == 5e5);
  CHECK(waits[1]["ts"] == 2e6);
  CHECK(waits[1]["dur"] == 1e6);
  REQUIRE(begins.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(begins[0]["ts"] == 0);
  CHECK(ends[0]["ts"] == 3e6);
  CHECK(begins[0]["id"] == ends[0]["id"]);
  CHECK(begins[0]["args"]["exposed_us"] == 1.5e6);
  CHECK(begins[0]["args"]["bytes"] == 64);
}

}  // namespace
}  // namespace chorale::train
