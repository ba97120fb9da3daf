// The rows of a benchmark, one for each requested combination of options. A combination that cannot run gets a line in
// CaseGrid::skipped instead.
//
// A size is the number of bytes of the full vector, as in nccl-tests. The full vector is the input of an all_reduce,
// broadcast, reduce_scatter or scatter, the output of an all_gather, and one rank's input of an all_to_all. Some collectives
// divide the vector into one block per rank. For these collectives, the size is rounded down to a multiple of the number of
// ranks, with at least one element per rank. Sizes grow by a constant factor. Both the smallest and the largest requested
// size are measured.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <chorale/problem.hpp>
#include "collectives/schedule/side_by_side.hpp"
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
  std::vector<int> hosts = {};  // host of each rank, real or emulated; empty: all ranks are on one host
  SideBySide all = {};          // the groups that make this call at the same time; empty: only this group
  std::int64_t count = 0;       // elements of the full vector

  std::int64_t bytes() const { return count * size_of(dtype); }
  Problem problem() const;
  // Rows with equal question() are compared with each other, although they can differ in algorithm, chunks or element type.
  auto question() const { return std::tuple(backend, what, ranks, in_place, bytes()); }
  int groups() const { return all.groups.empty() ? 1 : static_cast<int>(all.groups.size()); }
  double bus_factor() const;  // bytes on the busiest link per byte of the vector; 0 for a barrier
};

// The options as the user wrote them. In a list, the entry "all" means every value.
struct WantedCases {
  std::vector<std::string> ops{"all_reduce"}, algorithms{"auto"}, dtypes{"f32"}, redops{"sum"}, roots{"0"}, chunks{"1"};
  std::string in_place = "both";                                    // "both", "yes" or "no"
  std::int64_t begin = 8, end = std::int64_t{1} << 26, factor = 8;  // bytes; factor 1: only `begin`
  std::vector<int> hosts = {};                                      // emulated host of each rank; empty: the real hosts
};

std::vector<std::string> dtype_names();

void refuse_unknown(const WantedCases& wanted);  // throws a usage error that names the unknown value

// The backend and the ranks that will run the rows.
struct BenchWorld {
  std::string backend;
  int ranks = 1;
  std::vector<bool> has_native;  // indexed by collective
  std::vector<int> hosts = {};   // the host of each rank
  SideBySide all = {};           // BenchCase::all; `ranks` and `hosts` are those of one group
  bool sums = true;              // whether values are really reduced, so that results can be checked
};

struct CaseGrid {
  std::vector<BenchCase> cases;
  std::vector<std::string> skipped;  // "broadcast ring: there is no such algorithm"
};
CaseGrid make_grid(const WantedCases& wanted, const BenchWorld& stage);

// Returns the order in which cases are measured, which is the same on every rank. Cases are measured in rounds, and each
// round has one case of every size, in random order. Thus the cases measured so far are a fair sample of all cases, and can
// predict the remaining time. Other programs do not slow one size or algorithm more than the others. With `together`, cases
// with the same question() are measured one after the other. Seed 0 keeps the order of `cases`.
std::vector<std::size_t> turns_of(const std::vector<BenchCase>& cases, std::int64_t seed, bool together);

std::vector<std::int64_t> counts(const WantedCases& wanted, Collective what, DType dtype, int ranks);

}  // namespace chorale::bench
