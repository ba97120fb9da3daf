#include "experiments/bench/prediction_errors.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace chorale;
using bench::SeriesRow;

namespace {

SeriesRow row(const std::string& algorithm, std::int64_t bytes, double measured, double predicted, double width = 0.01) {
  return {.backend = "shm",
          .chosen = algorithm,
          .calibrated = 1,
          .ranks = 2,
          .bytes = bytes,
          .median = measured,
          .ci_low = measured * (1 - width),
          .ci_high = measured * (1 + width),
          .predicted = predicted};
}

}  // namespace

TEST_CASE("the errors of predictions are their quantiles, and a choice by prediction is compared with the clear winner") {
  bench::Rows rows;
  for (const std::int64_t bytes : {1024, 2048, 4096}) {
    rows.push_back(row("ring", bytes, 10, 10 * std::exp(0.1)));
    rows.push_back(row("direct", bytes, 20, 20 * std::exp(bytes == 4096 ? -1 : -0.2)));
  }
  rows.push_back(row("ring", 8192, 10, 10, 0.5));  // "ring" is not clearly faster than "direct"
  rows.push_back(row("direct", 8192, 11, 9, 0.5));
  rows.push_back(row("ring", 9000, 10, 1000));
  rows.back().calibrated = 0;
  const std::string text = bench::prediction_errors(rows);
  CHECK_THAT(text, says("# predicted / measured, shm on 2 ranks: half of 8 rows within 22 % (|ln| 0.20), 95 of 100 within a "
                        "factor of 2.7 (1.00)"));
  CHECK_THAT(text, says("at 2 of the 3 sizes that one clearly wins"));
  CHECK(bench::prediction_errors({rows.back()}).empty());
}

TEST_CASE("rows that were measured while the cores had another distance are not compared") {
  bench::Rows rows;
  for (const double barrier : {0.6, 0.7, 0.2}) {
    rows.push_back(row("ring", 1024, 10, barrier < 0.5 ? 30 : 10));
    rows.back().barrier = barrier * 1e-6;
    rows.back().usual_barrier = 0.65e-6;
  }
  const std::string text = bench::prediction_errors(rows);
  CHECK_THAT(text, says("half of 2 rows within 0 %"));
  CHECK_THAT(text, says("# not compared: 1 rows, before which a barrier took 0.2 µs; it took 0.65 µs when"));
  rows.back().oversubscribed = 1;  // with more ranks than cores, barrier times depend on the scheduler
  CHECK_THAT(bench::prediction_errors(rows), says("half of 3 rows"));
  rows.back().oversubscribed = 0;
  rows.back().usual_barrier = SeriesRow::unknown;
  CHECK_THAT(bench::prediction_errors(rows), says("half of 3 rows"));
}
