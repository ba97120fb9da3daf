// The rows of a benchmark, one for each requested combination of options. A combination that cannot run gets a line in
// Grid::skipped instead.
//
// A size is the bytes of the whole vector, as in nccl-tests: the input of an all_reduce, broadcast, reduce_scatter or
// scatter, the output of an all_gather, and one rank's input of an all_to_all. If a collective cuts the vector into one
// block per rank, the size is rounded down to a multiple of the number of ranks, but to at least one element per rank. Sizes
// grow by the factor from the smallest to the largest; both ends are measured.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <chorale/problem.hpp>
#include "src/math/reduction.hpp"

namespace chorale::bench {

struct BenchCase {
  std::string backend;
  Collective what = Collective::all_reduce;
  std::string algorithm = "auto";
  int chunks = 1;
  DType dtype = DType::f32;
  Redop op = Redop::sum;  // operator, if the collective reduces
  int root = 0;           // root, if the collective has one
  bool in_place = false;
  int ranks = 1;
  std::vector<int> hosts = {};  // by rank: its host, real or pretended; empty: all ranks are on one host
  std::int64_t count = 0;       // elements of the whole vector

  std::int64_t bytes() const { return count * size_of(dtype); }
  Problem problem() const;
  // Rows that differ only in algorithm, chunks or type answer the same question: which of them is fastest?
  auto question() const { return std::tuple(backend, what, ranks, in_place, bytes()); }
  double bus_factor() const;  // bytes over the busiest link, per byte of the vector; 0 for a barrier
};

// The options as the user wrote them. In a list, "all" stands for every value.
struct WantedCases {
  std::vector<std::string> ops{"all_reduce"}, algorithms{"auto"}, dtypes{"f32"}, redops{"sum"}, roots{"0"}, chunks{"1"};
  std::string in_place = "both";                                    // "both", "yes" or "no"
  std::int64_t begin = 8, end = std::int64_t{1} << 26, factor = 8;  // bytes; factor 1: only `begin`
  std::vector<int> hosts = {};                                      // pretended; empty: the hosts where the ranks are
};

std::vector<std::string> dtype_names();
std::vector<std::string> algorithm_names();  // auto, native, and those of all collectives, without duplicates

void refuse_unknown(const WantedCases& wanted);  // a usage error that names the unknown value

// Where the rows will run.
struct BenchWorld {
  std::string backend;
  int ranks = 1;
  std::vector<bool> has_native;  // by collective
  std::vector<int> hosts = {};   // where the ranks are
  bool sums = true;              // whether values are summed, and results checked
};

struct CaseGrid {
  std::vector<BenchCase> cases;
  std::vector<std::string> skipped;  // "broadcast ring: there is no such algorithm"
};
CaseGrid make_grid(const WantedCases& wanted, const BenchWorld& stage);

// The order in which cases are measured, the same on every rank: rounds in random order, each with one case of every size.
// So the cases measured so far are always a fair sample. They predict the remaining time well, and a busy minute favors no
// size or algorithm. With `together`, cases with the same question() are measured one after the other. Seed 0 keeps the
// order of `cases`.
std::vector<std::size_t> turns_of(const std::vector<BenchCase>& cases, std::int64_t seed, bool together);

std::vector<std::int64_t> counts(const WantedCases& wanted, Collective what, DType dtype, int ranks);

}  // namespace chorale::bench
