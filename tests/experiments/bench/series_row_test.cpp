#include "experiments/bench/series_row.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/bench/launches.hpp"
#include "experiments/bench/results.hpp"
#include "src/base/text.hpp"
#include "src/record/reader.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using namespace chorale::test;
using bench::Rows;
using bench::SeriesRow;

namespace {

SeriesRow measured(double seconds) {
  return {.op = Collective::reduce,
          .backend = "simulated:here.toml",
          .algorithm = "auto",
          .chosen = "binomial",
          .dtype = DType::bf16,
          .redop = "avg",
          .in_place = true,
          .cache = bench::Cache::cold,
          .memory = bench::Where::heap,
          .oversubscribed = 1,
          .root = 2,
          .ranks = 4,
          .count = 512,
          .bytes = 1024,
          .repetitions = 20,
          .turn = 7,
          .wrong = 3,
          .bytes_sent = 3072.0,
          .median = seconds,
          .p95 = 1.5 * seconds,
          .algorithm_bandwidth = 1024 / seconds,
          .p99 = 2 * seconds,
          .max = 10 * seconds,
          .products = 3,
          .products_alone = seconds,
          .both = 1.5 * seconds};
}

}  // namespace

TEST_CASE("programs read the columns of a benchmark in the order that they know") {
  std::vector<std::string> names;
  const auto json = bench::as_json(SeriesRow());
  for (const auto& [name, value] : json.items()) names.push_back(name);
  CHECK(join(names, " ") ==
        "op backend algorithm chosen chunks ranks hosts dtype redop root count bytes in_place seconds seconds_ci_low "
        "seconds_ci_high seconds_p5 seconds_p95 algbw_bytes_per_s busbw_bytes_per_s wrong predicted_seconds ceiling_seconds "
        "bytes_sent bytes_predicted repetitions launches memory cache oversubscribed calibrated barrier_seconds "
        "usual_barrier_seconds seconds_p99 seconds_max groups strided products products_seconds beside_seconds "
        "products_beside_seconds both_seconds both_predicted_seconds hidden");
}

TEST_CASE("what is printed of a benchmark's row has five digits, and is null if it is absent") {
  const auto json = bench::as_json(bench::in_five_digits(measured(1.23456789e-6)));
  const auto printed = [&](const char* name) { return json.at(name).dump(); };
  CHECK(join({printed("op"), printed("backend"), printed("dtype"), printed("redop"), printed("cache"), printed("memory")},
             " ") == R"("reduce" "simulated:here.toml" "bf16" "avg" "cold" "heap")");
  CHECK(join({printed("in_place"), printed("oversubscribed"), printed("calibrated"), printed("root")}, " ") == "true 1 0 2");
  CHECK(join({printed("seconds"), printed("seconds_p95"), printed("algbw_bytes_per_s")}, " ") ==
        "1.2346e-06 1.8519e-06 829440000.0");
  CHECK(join({printed("wrong"), printed("bytes_sent"), printed("bytes_predicted"), printed("ceiling_seconds")}, " ") ==
        "3 3072 null null");
}

TEST_CASE("a benchmark's row that was printed is read back") {
  const auto json = bench::as_json(bench::in_five_digits(measured(1.23456789e-6)));
  CHECK(bench::as_json(bench::row_from(json)) == json);
  CHECK(bench::row_from(json).cache == bench::Cache::cold);
  CHECK(bench::row_from({{"op", "barrier"}, {"wrong", nullptr}}).op == Collective::barrier);  // output of an older program
  CHECK_THROWS_WITH(bench::row_from({{"op", "sort"}}), says("op has no value \"sort\""));
}

TEST_CASE("a record has a benchmark's exact numbers, in columns of its own order") {
  const TemporaryFolder folder;
  VirtualClock clock;
  SeriesRow unchecked = measured(1.23456789e-6);
  unchecked.backend = "shm";
  unchecked.wrong.reset();
  unchecked.bytes_sent.reset();
  Recorder recorder(folder, {}, clock);
  bench::write(recorder, {measured(1.23456789e-6), unchecked}, std::vector<bench::Series>(2));
  recorder.finish("ok");
  const Reader reader(recorder.file());
  std::vector<std::string> names;
  std::map<std::string, std::string> cells;
  for (const Variable& column : reader.variables("/series")) {
    names.push_back(column.name);
    cells[column.name] = join(column.cells, " ");
  }
  CHECK(
      join(names, " ") ==
      "row op backend algorithm chosen dtype redop in_place cache memory oversubscribed calibrated chunks root ranks hosts "
      "count bytes repetitions turn wrong bytes_predicted bytes_sent median ci_low ci_high p5 p95 predicted ceiling p99 "
      "max groups strided products products_alone call_beside products_beside both both_predicted");
  CHECK(cells["op"] == "reduce reduce");
  CHECK(cells["backend"] == "simulated shm");
  CHECK(join({cells["in_place"], cells["cache"], cells["oversubscribed"], cells["calibrated"]}, " ") ==
        "yes yes cold cold yes yes no no");
  CHECK(cells["turn"] == "7 7");
  CHECK(join({cells["wrong"], cells["bytes_sent"], cells["bytes_predicted"]}, " ") == "3 -1 3072 -1 -1 -1");
  CHECK(std::stod(cells["median"]) == 1.23456789e-6);
  CHECK(std::isnan(std::stod(cells["predicted"])));
}

TEST_CASE("rows of several launches become one: medians of times, sums of counts") {
  SeriesRow few = measured(1e-6);
  few.products = 1;  // each launch chooses its own number of products
  const Rows rows = bench::merged({{few}, {measured(4e-6)}, {measured(2e-6)}});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].launches == 3);
  CHECK(rows[0].repetitions == 60);
  CHECK(rows[0].wrong == 9);
  CHECK(rows[0].median == 2e-6);
  CHECK(rows[0].p95 == 3e-6);
  CHECK(rows[0].p99 == 4e-6);
  CHECK(rows[0].max == 40e-6);  // of all launches: a rare slow call is not lost
  CHECK(rows[0].ci_high == 4e-6);
  CHECK(rows[0].algorithm_bandwidth == 512e6);
  CHECK(std::isnan(rows[0].bus_bandwidth));
  CHECK(rows[0].products == 3);
  CHECK((rows[0].products_alone == 2e-6 && rows[0].both == 3e-6 && rows[0].hidden == 0.5));
  SeriesRow old = measured(1e-6);  // a row from a program that printed no tails
  old.p99 = old.max = SeriesRow::unknown;
  CHECK(std::isnan(bench::merged({{old}, {old}})[0].max));
  CHECK(bench::row_from({{"op", "barrier"}, {"seconds_p95", 2e-6}}).p95 == 2e-6);
  CHECK(std::isnan(bench::row_from({{"op", "barrier"}, {"seconds_p95", 2e-6}}).p99));
  SeriesRow other = measured(1e-6);
  other.groups = 2;
  CHECK_THROWS_WITH(bench::merged({{measured(1e-6)}, {other}}), says("case 0 has another groups in one of them"));
  other = measured(1e-6);
  other.redop = "max";
  CHECK_THROWS_WITH(bench::merged({{measured(1e-6)}, {other}}), says("case 0 has another redop in one of them"));
}
