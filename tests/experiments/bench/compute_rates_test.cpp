// Tests the fit of compute rates, one rate per kind of work, to the measured times of steps.
#include "experiments/bench/compute_rates.hpp"

#include "tests/catch.hpp"

namespace chorale::test {

TEST_CASE("seconds per unit of work are fitted to steps that differ, and none is negative") {
  const Amounts truth{2e-12, 5e-12, 3e-10, 1e-10};
  std::vector<bench::TimedWork> rows{
      {{8e9, 1e8, 3e7, 0}, 0}, {{2e9, 8e8, 5e7, 0}, 0}, {{1e9, 1e7, 9e7, 0}, 0}, {{0, 0, 0, 4e7}, 0}};
  for (bench::TimedWork& row : rows)
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind) row.seconds += row.work[kind] * truth[kind];
  const Amounts found = bench::fit_work(rows);
  for (std::size_t kind = 0; kind < kinds_of_work; ++kind) CHECK(found[kind] == Approx(truth[kind]).epsilon(0.01));

  rows[2].seconds /= 100;  // no rates can explain this time
  for (const double each : bench::fit_work(rows)) CHECK(each >= 0);
}

}  // namespace chorale::test
