// Reductions of random values must be correct within the rounding error, and bit-identical on all ranks. CASES sets the
// total number of random calls on all backends (300). SEED selects different calls.
//
//   a call       any reducing algorithm, type, operator, root, number of chunks, simulated hosts
//   its sizes    from 0 to 64 Ki elements, also fewer than ranks; blocks of any sizes; buffers at any offset
//   the truth    integers: exact; floating-point types: computed in f64 or wider, within the bound below
//
// In any order of addition, a sum of n values is rounded n − 1 times, each time by at most u · Σ|x|. Here u is half a unit
// in the last place of the type. Storing the result rounds once more, and so does the division of an average. A product has
// the same bound for its relative error. min and max do not round.
#include <cmath>
#include <limits>
#include <random>

#include <chorale/algorithm.hpp>
#include "src/base/random.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/tally.hpp"

namespace chorale::test {
namespace {

using Draw = std::mt19937_64;
std::int64_t below(Draw& draw, std::int64_t n) { return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(n)); }

struct ReducingCall {
  std::uint64_t number;
  const Algorithm* algorithm;
  DType dtype;
  Redop op;
  int chunks;
  std::int64_t offset;  // number of elements before the buffers
  Problem problem;
  std::vector<std::int64_t> counts;  // block sizes; empty: even blocks

  std::string words() const {
    return fmt::format("{} by {} of {} {}, {}, root {}, {} chunks{}{}, offset {}, call {}", name_of(problem.what),
                       algorithm->name, problem.blocks.total(), name_of(dtype), redop_names[static_cast<std::size_t>(op)],
                       problem.root, chunks, problem.in_place ? ", in place" : "", counts.empty() ? "" : ", uneven", offset,
                       number);
  }
};

// Draws a random call. All ranks draw the same call.
ReducingCall drawn_call(std::uint64_t number, Communicator& c) {
  Draw draw(number);
  std::vector<const Algorithm*> able;
  for (const Algorithm& algorithm : all_algorithms())
    if (reduces(algorithm.what)) able.push_back(&algorithm);
  const int p = c.size();
  for (;;) {
    ReducingCall call{number,
                      able[static_cast<std::size_t>(below(draw, std::ssize(able)))],
                      all_dtypes[below(draw, std::ssize(all_dtypes))],
                      static_cast<Redop>(below(draw, std::ssize(redop_names))),
                      1 + static_cast<int>(below(draw, 3)),
                      below(draw, 9),
                      {},
                      {}};
    const std::int64_t ranges[] = {1, p, p, 2 * p + 2, 2 * p + 2, 300, 300, 300, 5000, 5000, 5000, 65537};
    const std::int64_t count = below(draw, ranges[below(draw, std::ssize(ranges))]);
    const Collective what = call.algorithm->what;
    std::vector<int> hosts;
    if (below(draw, 2) == 0)
      for (int r = 0, each = 1 + static_cast<int>(below(draw, p)); r < p; ++r) hosts.push_back(r / each);
    call.problem =
        Problem::even(what, count, p, static_cast<int>(below(draw, p)), count > 0 && below(draw, 2) == 0, std::move(hosts));
    call.problem.rank = c.rank();
    if (what == Collective::reduce_scatter && below(draw, 2) == 0) {
      for (int r = 0; r < p; ++r) call.counts.push_back(below(draw, 4) == 0 ? 0 : below(draw, 2 * count / p + 2));
      call.problem.blocks = Blocks(call.counts);
      if (call.problem.blocks.total() == 0) call.problem.in_place = false;
    }
    if (fits(*call.algorithm, call.problem)) return call;
  }
}

// The type in which 16-bit floats are computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Returns an input value. Integers have all magnitudes. Floating-point values have magnitudes from 2^-4 to 16 and random
// mantissas, so that their sums must be rounded. Factors of products are close to 1, so that the product over 8 ranks fits
// in f16.
template <class T>
T given(const ReducingCall& call, int rank, std::int64_t element) {
  const Random random{.seed = call.number, .site = static_cast<std::uint32_t>(rank)};
  const auto at = static_cast<std::uint64_t>(2 * element);
  const std::uint64_t hash = std::uint64_t{random.bits(at)} << 32 | random.bits(at + 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(hash);
  } else {
    const double mantissa = 0.5 + static_cast<double>(hash >> 12) * 0x1p-53;  // 0.5 to 1
    const int exponent = call.op == Redop::prod ? static_cast<int>(hash & 1) : static_cast<int>(hash & 7) - 3;
    return T(static_cast<Wide<T>>(std::ldexp(hash & 8 ? -mantissa : mantissa, exponent)));
  }
}

// The reduction of one element over all ranks' vectors, computed in the wide type W. Integers wrap around in their own type.
template <class T, class W>
W reduced(const ReducingCall& call, std::int64_t element, W (*combine)(Redop, W, W)) {
  W result = static_cast<W>(given<T>(call, 0, element));
  for (int rank = 1; rank < call.problem.size; ++rank)
    result = combine(call.op, result, static_cast<W>(given<T>(call, rank, element)));
  return result;
}

template <class T>
T wrapping(Redop op, T a, T b) {
  if (op == Redop::min) return std::min(a, b);
  if (op == Redop::max) return std::max(a, b);
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<T>(op == Redop::prod ? x * y : x + y);
}

long double in_reals(Redop op, long double a, long double b) {
  if (op == Redop::min) return std::min(a, b);
  if (op == Redop::max) return std::max(a, b);
  return op == Redop::prod ? a * b : a + b;
}
long double sizes_in_reals(Redop op, long double a, long double b) {
  return op == Redop::prod ? std::fabs(a * b) : std::fabs(a) + std::fabs(b);
}

template <class T>
constexpr double half_unit() {
  return std::is_same_v<T, double>  ? 0x1p-53
         : std::is_same_v<T, float> ? 0x1p-24
         : std::is_same_v<T, f16>   ? 0x1p-11
                                    : 0x1p-8;
}

// Returns "" if `found` is the reduction of this element over all ranks' vectors. The allowed rounding error covers every
// order of the operations.
template <class T>
std::string flaw_of(const ReducingCall& call, std::int64_t element, T found) {
  const int p = call.problem.size;
  if constexpr (std::is_integral_v<T>) {
    T wanted = reduced<T, T>(call, element, wrapping<T>);
    if (call.op == Redop::avg) wanted = static_cast<T>(wanted / static_cast<T>(p));
    return found == wanted ? "" : fmt::format("{}, expected {}", found, wanted);
  } else {
    const long double ranks = call.op == Redop::avg ? p : 1;
    const long double result = reduced<T, long double>(call, element, in_reals) / ranks;
    const long double size = std::fabs(reduced<T, long double>(call, element, sizes_in_reals)) / ranks;
    const bool exact = call.op == Redop::min || call.op == Redop::max || p == 1;
    const double roundings = exact ? 0 : p + 1;                        // by p − 1 operators, one division and one store
    const double smallest = std::is_same_v<T, f16> ? 0x1p-25 * p : 0;  // f16 rounds small values to multiples of 2^-24
    const long double bound = 1.01L * roundings * half_unit<T>() * size + (exact ? 0 : smallest);
    const auto got = static_cast<long double>(static_cast<Wide<T>>(found));
    return std::fabs(got - result) <= bound
               ? ""
               : fmt::format("{}, expected {} ± {}", double(got), double(result), double(bound));
  }
}

// A vector of `count` elements that begins `offset` elements after an aligned address. Peers can map the memory of some of
// these vectors.
template <class T>
class Vector {
 public:
  Vector(std::int64_t count, std::int64_t offset, Allocator& memory)
      : buffer_(memory.allocate((count + offset) * size_of(dtype_of<T>()), Category::comm)), offset_(offset) {}
  T* data() { return static_cast<T*>(buffer_.data()) + offset_; }

 private:
  Buffer buffer_;
  std::int64_t offset_;
};

template <class T>
std::string trouble_of(const ReducingCall& call, Communicator& c, Allocator& memory) {
  const Problem& problem = call.problem;
  const std::int64_t total = problem.blocks.total(), home = problem.output_home();
  const bool is_block = problem.gives_block(), has_output = problem.what != Collective::reduce || c.rank() == problem.root;
  Vector<T> in(total, call.offset, memory), out(problem.in_place ? 0 : total, call.offset * 3 % 8, memory);
  for (std::int64_t i = 0; i < total; ++i) in.data()[i] = given<T>(call, c.rank(), i);
  T* const result = problem.in_place ? in.data() + (is_block ? home : 0) : out.data();
  const std::int64_t results = is_block ? problem.blocks.count(c.rank()) : total;
  c.choose(problem.what, call.algorithm->name, call.chunks);
  c.pretend_hosts(problem.hosts);
  c.run({problem.what,
         {in.data(), total, call.dtype},
         {result, problem.in_place || has_output ? results : 0, call.dtype},
         call.op,
         problem.root,
         call.counts});
  std::string trouble;
  for (std::int64_t i = 0; has_output && i < results && trouble.empty(); ++i)
    if (const std::string flaw = flaw_of<T>(call, i + (is_block ? problem.blocks.first(c.rank()) : 0), result[i]);
        !flaw.empty())
      trouble = fmt::format("element {} is {}", i, flaw);
  if (problem.what != Collective::all_reduce) return trouble;
  const std::string mine(reinterpret_cast<const char*>(result), static_cast<std::size_t>(results) * sizeof(T));
  const bool as_on_rank_0 = mpi::broadcast(world().world(), mine) == mine;  // all ranks take part
  return trouble.empty() && !as_on_rank_0 ? "its bits differ from those of rank 0" : trouble;
}

}  // namespace

TEST_CASE("random reductions are right within the rounding of their type, on every backend", "[spmd]") {
  const std::int64_t cases = std::stoll(environment("CASES", thorough() ? "3000" : "300"));
  const std::uint64_t seed = std::stoull(environment("SEED", "1"));
  SystemClock clock;
  std::vector<const Backend*> able;
  for (const Backend& backend : all_backends())
    if (joins_all(backend)) able.push_back(&backend);
  Tally tally(world().rank() == 0);
  for (std::int64_t b = 0; b < std::ssize(able); ++b) {
    const Backend& backend = *able[static_cast<std::size_t>(b)];
    Communicator c = open_world(backend.name, world(), clock);
    HostMemory heap;
    Ledger ledger;
    Allocator ordinary(heap, ledger);
    std::string trouble;
    for (std::int64_t i = b; i < cases; i += std::ssize(able)) {
      const ReducingCall call = drawn_call(seed * 1'000'000'007 + static_cast<std::uint64_t>(i), c);
      alive();
      std::string wrong;
      Allocator& memory = i / std::ssize(able) % 3 == 0 ? ordinary : c.allocator();
      visit(call.dtype, [&]<class T>(Type<T>) { wrong = trouble_of<T>(call, c, memory); });
      tally.add(ranks_that_failed(!wrong.empty()).empty());
      if (!wrong.empty() && trouble.empty())
        trouble = fmt::format("{}, {} ranks on {}, rank {}: {}", call.words(), c.size(), backend.name, c.rank(), wrong);
    }
    INFO(trouble);
    REQUIRE_ALL(trouble.empty());
  }
  REQUIRE(tally.tried == cases);
  REQUIRE(cases > 0);
}

}  // namespace chorale::test
