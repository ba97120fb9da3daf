#include "experiments/bench/tables.hpp"

#include <nlohmann/json.hpp>

#include "src/base/text.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using bench::Rows;
using bench::SeriesRow;

namespace {

// Returns a row whose interval ends, `low` and `high`, are given as multiples of the time.
SeriesRow row(std::int64_t bytes, double seconds, double low, double high, std::int64_t launches = 1) {
  return {.backend = "shm",
          .algorithm = "auto",
          .chosen = "recursive_doubling",
          .redop = "sum",
          .ranks = 2,
          .bytes = bytes,
          .repetitions = 20,
          .wrong = 0,
          .median = seconds,
          .ci_low = low * seconds,
          .ci_high = high * seconds,
          .p95 = 1.5 * seconds,
          .predicted = seconds,
          .ceiling = seconds / 2,
          .algorithm_bandwidth = static_cast<double>(bytes) / seconds,
          .bus_bandwidth = static_cast<double>(bytes) / seconds,
          .p99 = 2 * seconds,
          .max = 30 * seconds,
          .launches = launches};
}

std::vector<std::string> lines_of(const Rows& rows, std::size_t columns = 80) {
  return split(bench::print(rows, "text", columns), '\n');
}

}  // namespace

TEST_CASE("a benchmark's table fits 80 columns, and its heading says that the interval is of calls or of launches") {
  const auto lines = lines_of({row(8, 1.115e-6, 0.9, 1.1), row(67108864, 0.445e-1, 0.99, 1.01)});
  CHECK(lines[0] == "all_reduce of f32, sum, 2 ranks, shm, out of place");
  for (const std::string& line : lines) CHECK(first_columns(line, 80) == line);
  CHECK_THAT(lines[1], says(" time  calls  ") && says(" predicted  ceiling"));
  CHECK_THAT(lines[2], says("us    ± %  "));
  CHECK_THAT(lines[3], says(" 1.115     10  "));
  CHECK_THAT(lines[4], says(" 44500    1.0  "));
  CHECK_THAT(lines_of({row(8, 1e-6, 0.9, 1.1, 6)})[1], says(" time  launches  "));
}

TEST_CASE("the tails of single calls are last: below the table on a narrow screen, and absent if there is one call") {
  const Rows rows{row(8, 1e-6, 0.9, 1.1), row(67108864, 0.0445, 0.99, 1.01)};
  const auto narrow = lines_of(rows), wide = lines_of(rows, 0);
  REQUIRE((narrow.size() > 9 && wide.size() > 4));
  CHECK_THAT(wide[1], says(" predicted  ceiling    p95    p99      max"));
  CHECK_THAT(wide[3], says("        1      0.5    1.5      2       30"));
  CHECK_THAT(wide[4], says("    44500    22250  66750  89000  1335000"));
  CHECK_THAT(narrow[1], !says("p95"));
  CHECK_THAT(narrow[6], says("   bytes    p95    p99      max"));
  CHECK_THAT(narrow[8], says("       8    1.5      2       30"));
  SeriesRow once = rows[0];
  once.repetitions = 1;
  CHECK_THAT(lines_of({once}, 0)[1], !says("p9") && !says("max"));
}

TEST_CASE("an interval beyond 100 % of the time is shown by its ends, in microseconds") {
  const Rows rows{row(4096, 2.96e-6, 0.5, 40), row(8192, 3e-3, 0.9, 2.8), row(16384, 3e-6, 0.1, 2)};
  const auto lines = lines_of(rows);
  CHECK_THAT(lines[3], says(" 2.96  1.48–118  "));
  CHECK_THAT(lines[4], says(" 3000        95  "));
  CHECK_THAT(lines[5], says("    3        95  "));
  CHECK(bench::shows_ranges(rows));
  CHECK_FALSE(bench::shows_ranges({rows[1]}));
}

TEST_CASE("beside products, a table has the times of both in place of the bandwidths") {
  SeriesRow beside = row(67108864, 0.0445, 0.99, 1.01);
  beside.products = 9000;
  beside.products_alone = 0.04;
  beside.products_beside = 0.05;
  beside.call_beside = 0.06;
  beside.both = 0.0625;
  beside.both_predicted = 0.07;
  beside.hidden = 0.55;
  beside.groups = 2;
  const auto lines = lines_of({beside}, 0);
  CHECK(lines[0] == "all_reduce of f32, sum, 2 groups, each of 2 ranks, shm, out of place, beside products");
  CHECK_THAT(lines[1], says(" time  calls  beside  products  slower   both  predicted  hidden"));
  CHECK_THAT(lines[3], says("44500    1.0   60000     40000    1.25  62500      70000      55"));
  CHECK_FALSE(bench::shows_predictions({beside}));
}

TEST_CASE("JSON and CSV have the same names and values") {
  const Rows rows{row(4096, 2.96e-6, 0.5, 40)};
  const auto lines = split(bench::print(rows, "csv", 0), '\n');
  const auto json = nlohmann::ordered_json::parse(bench::print(rows, "json", 0));
  std::vector<std::string> names, values;
  for (const auto& [name, value] : json.at(0).items()) {
    names.push_back(name);
    values.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
  }
  CHECK(lines[0] == join(names, ","));
  CHECK(lines[1] == join(values, ","));
  CHECK_THAT(bench::print(rows, "json", 0), says("\"seconds\": 2.96e-06"));
}
