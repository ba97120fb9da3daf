#include "experiments/bench/cases.hpp"

#include <algorithm>
#include <set>

#include <chorale/algorithm.hpp>
#include "src/base/error.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::bench;
using Counts64 = std::vector<std::int64_t>;

namespace {

BenchWorld stage(const std::string& backend, int ranks, bool native) {
  return {backend, ranks, std::vector<bool>(std::size(collective_names), native)};
}

}  // namespace

TEST_CASE("sizes that begin at zero continue with one element and grow by the factor") {
  WantedCases wanted;
  wanted.begin = 0;
  wanted.end = 1024;
  wanted.factor = 16;
  CHECK(counts(wanted, Collective::all_reduce, DType::f32, 3) == Counts64{0, 1, 16, 256});
  CHECK(counts(wanted, Collective::all_gather, DType::f32, 3) == Counts64{0, 3, 15, 255});
  CHECK(counts(wanted, Collective::all_to_all, DType::u8, 300) == Counts64{0, 300, 900});
  CHECK(counts(wanted, Collective::barrier, DType::f32, 3) == Counts64{0});
  wanted.begin = 8;
  wanted.factor = 1;
  CHECK(counts(wanted, Collective::reduce, DType::f64, 3) == Counts64{1});
}

TEST_CASE("the largest size is always measured, once, whatever the factor") {
  WantedCases wanted;
  wanted.begin = 8;
  wanted.end = 1 << 20;
  wanted.factor = 8;  // 1 MiB is not of the form 8 · 8ⁿ
  CHECK(counts(wanted, Collective::all_reduce, DType::u8, 2) == Counts64{8, 64, 512, 4096, 32768, 262144, 1 << 20});
  wanted.end = 512;
  CHECK(counts(wanted, Collective::all_reduce, DType::u8, 2) == Counts64{8, 64, 512});
  wanted.end = 8;
  CHECK(counts(wanted, Collective::all_reduce, DType::u8, 2) == Counts64{8});
  wanted.begin = 1'000'000'000'000'000;
  wanted.end = wanted.begin + 8;
  wanted.factor = 1'000'000;  // the next size would overflow
  CHECK(counts(wanted, Collective::all_reduce, DType::u8, 2) == Counts64{wanted.begin, wanted.end});
  wanted.begin = 0;
  wanted.end = 0;
  CHECK(counts(wanted, Collective::all_reduce, DType::f32, 2) == Counts64{0});
  wanted.end = 2;  // less than one element
  CHECK(counts(wanted, Collective::all_reduce, DType::f32, 2) == Counts64{0, 1});
}

TEST_CASE("the grid has every possible case once, and a line for each impossible one") {
  WantedCases wanted;
  wanted.ops = wanted.algorithms = wanted.dtypes = wanted.redops = wanted.roots = {"all"};
  wanted.begin = 8;
  wanted.factor = 1;
  const CaseGrid grid = make_grid(wanted, stage("mpi", 3, true));
  std::set<std::string> seen;
  std::size_t native = 0;
  for (const BenchCase& row : grid.cases) {
    seen.insert(std::string(name_of(row.what)) + row.algorithm);
    native += row.algorithm == "native";
    CHECK(row.problem().size == 3);
  }
  std::size_t fitting = 0;
  for (const Algorithm& algorithm : all_algorithms())
    fitting += fits(algorithm, Problem::even(algorithm.what, 3, 3)) ||
               fits(algorithm, Problem::even(algorithm.what, 3, 3, 0, true));
  CHECK(seen.size() == fitting + std::size(collective_names));
  // The number of cases is as follows. all_reduce and reduce_scatter have 7 types × 5 operators × 2 (in place or not) = 70
  // cases each, and reduce has 70 × 3 roots. all_gather and all_to_all have 7 types × 2 cases each. broadcast, gather and
  // scatter have 7 types × 3 roots each, and barrier has one case.
  CHECK(native == 70 + 70 + 210 + 14 + 14 + 21 + 21 + 21 + 1);
  CHECK(std::count(grid.skipped.begin(), grid.skipped.end(), "all_gather recursive_doubling on mpi: does not fit 3 ranks") ==
        1);
}

TEST_CASE("invalid requests are refused, unavailable algorithms are skipped") {
  WantedCases wanted;
  wanted.ops = {"all_reduce", "broadcast"};
  wanted.algorithms = {"one_shot", "native"};
  wanted.roots = {"7"};
  wanted.factor = 1;
  const CaseGrid grid = make_grid(wanted, stage("ucx", 2, false));
  CHECK(grid.cases.size() == 2);  // only the one-shot all_reduce, in place and out of place
  CHECK(grid.skipped.size() == 3);
  const auto refused = [](auto change) {
    WantedCases bad;
    change(bad);
    refuse_unknown(bad);
  };
  CHECK_THROWS_WITH(refused([](WantedCases& w) { w.ops = {"al_reduce"}; }), says("did you mean \"all_reduce\"?"));
  CHECK_THROWS_WITH(refused([](WantedCases& w) { w.algorithms = {"rnig"}; }), says("did you mean \"ring\"?"));
  CHECK_THROWS_WITH(refused([](WantedCases& w) { w.dtypes = {"f23"}; }), says("unknown type"));
  CHECK_THROWS_WITH(refused([](WantedCases& w) { w.roots = {"-1"}; }), says("invalid root"));
  CHECK_THROWS_WITH(refused([](WantedCases& w) {
                      w.begin = 9;
                      w.end = 8;
                    }),
                    says("the largest size is below"));
  CHECK_NOTHROW(refused([](WantedCases& w) { w.algorithms = {"native", "auto", "all"}; }));
  CHECK_NOTHROW(refused([](WantedCases& w) {
    w.ops = {"all_reduce"};
    w.algorithms = {"bruck"};
  }));  // `bench` later skips this case with a message
}

TEST_CASE("an unknown algorithm is answered with the algorithms of the requested collectives only") {
  const auto refused = [](const std::vector<std::string>& ops, const std::string& algorithm) {
    WantedCases bad;
    bad.ops = ops;
    bad.algorithms = {algorithm};
    refuse_unknown(bad);
  };
  CHECK_THROWS_WITH(refused({"all_reduce"}, "nonsense"), says("ring") && !says("bruck") && !says("pairwise"));
  CHECK_THROWS_WITH(refused({"all_reduce"}, "brukc"), !says("bruck"));
  CHECK_THROWS_WITH(refused({"all_reduce", "all_to_all"}, "nonsense"), says("recursive_doubling") && says("pairwise"));
  CHECK_THROWS_WITH(refused({"all"}, "brukc"), says("did you mean \"bruck\"?"));
}

TEST_CASE(
    "the first tenth of the cases roughly predicts the total time; with `together`, a question's cases are consecutive") {
  WantedCases wanted;
  wanted.ops = wanted.algorithms = {"all"};
  wanted.begin = 8;
  wanted.end = 16 << 20;
  wanted.factor = 16;
  const std::vector<BenchCase> cases = make_grid(wanted, stage("mpi", 4, true)).cases;
  const auto seconds = [&](std::size_t c) {
    return 0.05 + 0.1 * static_cast<double>(cases[c].what) + static_cast<double>(cases[c].bytes()) * 1e-8;
  };
  // Predicts the total time after the first tenth of the cases. Returns the ratio of this prediction to the real total time.
  const auto foretold = [&](const std::vector<std::size_t>& turns) {
    double all = 0, tenth = 0;
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      all += seconds(turns[turn]);
      if (10 * turn < turns.size()) tenth += seconds(turns[turn]);
    }
    return 10 * tenth / all;
  };
  for (const bool together : {false, true})
    for (std::int64_t seed = 1; seed <= 20; ++seed) {
      const std::vector<std::size_t> turns = turns_of(cases, seed, together);
      REQUIRE(std::set(turns.begin(), turns.end()).size() == cases.size());
      CHECK((foretold(turns) > 0.45 && foretold(turns) < 1.8));
      std::set<decltype(BenchCase().question())> questions;
      std::size_t changes = 0;
      for (std::size_t turn = 0; turn < turns.size(); ++turn) {
        questions.insert(cases[turns[turn]].question());
        changes += turn == 0 || cases[turns[turn]].question() != cases[turns[turn - 1]].question();
      }
      CHECK((changes == questions.size()) == together);
    }
  const std::vector<std::size_t> in_order = turns_of(cases, 0, false);
  CHECK((std::ranges::is_sorted(in_order) && foretold(in_order) < 0.35));
  CHECK(turns_of(cases, 7, true) == turns_of(cases, 7, true));
  CHECK(turns_of(cases, 7, true) != turns_of(cases, 8, true));
}
