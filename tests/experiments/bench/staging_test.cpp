#include "experiments/bench/staging.hpp"

#include "tests/catch.hpp"

namespace chorale::bench {

TEST_CASE("the longest staged message is the one after which copies by the kernel take less time") {
  using Times = std::map<std::int64_t, StagingTimes>;
  const Times usual{{512, {1, 4}}, {1024, {1.2, 3}}, {2048, {2, 2.2}}, {4096, {4, 2}}, {8192, {8, 3}}};
  CHECK(best_staged_bytes(usual) == 2048);
  CHECK(best_staged_bytes({}) == -1);
  CHECK(best_staged_bytes({{512, {4, 1}}, {1024, {5, 1}}}) == 0);
  CHECK(best_staged_bytes({{512, {1, 2}}, {1024, {1, 2}}}) == 1024);
  CHECK(best_staged_bytes({{512, {1, 1}}, {1024, {1, 1}}}) == 0);  // no difference: nothing is staged
  Times disturbed = usual;                                         // one measurement was disturbed
  disturbed[1024] = {3.2, 3};
  CHECK(best_staged_bytes(disturbed) == 2048);
  disturbed = usual;
  disturbed[8192] = {8, 9};
  CHECK(best_staged_bytes(disturbed) == 2048);
}

}  // namespace chorale::bench
