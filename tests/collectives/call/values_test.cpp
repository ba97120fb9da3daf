// Tests the exact bits of reductions. Every all_reduce algorithm gives the correct min and max of NaN, infinities and both
// zeros, whichever rank holds these values. The results are bit-identical on all ranks. Every reducing algorithm can compute
// averages in every type. The algorithms one_shot and direct round each sum of 16-bit floats only once, whereas a ring
// rounds the sum at every hop.
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/random.hpp"
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

using Bytes = std::vector<std::byte>;

// One rank holds the value `odd`, and all other ranks hold the value `usual`. The test runs once for each rank as the holder
// of `odd`.
struct Oddity {
  float odd, usual;
};
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
const Oddity oddities[] = {{nan, 1},       {-nan, -infinity}, {-0.0f, 0.0f}, {0.0f, -0.0f}, {infinity, -infinity},
                           {-infinity, 5}, {1e-40f, 0}};

template <class T>
Bytes odd_values(int rank, int size) {
  Bytes bytes;
  for (int turn = 0; turn < size; ++turn)
    for (const Oddity& oddity : oddities) {
      T value(static_cast<T>(turn == rank ? oddity.odd : oddity.usual));
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const void*>(&value), sizeof value);
      if (std::isnan(static_cast<double>(value))) bits |= 5;  // a NaN payload that must not appear in the result
      bytes.insert(bytes.end(), reinterpret_cast<const std::byte*>(&bits),
                   reinterpret_cast<const std::byte*>(&bits) + sizeof value);
    }
  return bytes;
}

std::string extremes_of_odd_values(Communicator& c) {
  if (c.size() == 1) return "";  // no comparison takes place
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != Collective::all_reduce) continue;
    c.choose(algorithm.what, algorithm.name);
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Redop op : {Redop::min, Redop::max}) {
        std::vector<Bytes> all;
        visit(dtype, [&]<class T>(Type<T>) {
          if constexpr (!std::is_integral_v<T>)
            for (int r = 0; r < c.size(); ++r) all.push_back(odd_values<T>(r, c.size()));
        });
        std::vector<const void*> sources;
        for (const Bytes& bytes : all) sources.push_back(bytes.data());
        Bytes x = all[static_cast<std::size_t>(c.rank())], wanted(x.size());
        const std::int64_t count = static_cast<std::int64_t>(x.size()) / size_of(dtype);
        reduce_reference(op, dtype, wanted.data(), sources, count);
        c.all_reduce({x.data(), count, dtype}, op);
        for (std::size_t i = 0; i < x.size(); ++i)
          if (x[i] != wanted[i])
            return fmt::format("{} of {} by {}: oddity {} on rank {}", redop_names[static_cast<std::size_t>(op)],
                               name_of(dtype), algorithm.name,
                               i / static_cast<std::size_t>(size_of(dtype)) % std::size(oddities),
                               i / static_cast<std::size_t>(size_of(dtype)) / std::size(oddities));
      }
  }
  return "";
}

// Sums of these values depend on the order of addition. So the results of all ranks are bit-identical only if one rank sums
// each element, or if all ranks add in the same order.
Bytes random_floats(DType dtype, std::int64_t count, int rank) {
  Bytes bytes(static_cast<std::size_t>(count * size_of(dtype)));
  const Random random{.seed = 3, .site = static_cast<std::uint32_t>(rank)};
  visit(dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = random.bits(static_cast<std::uint64_t>(i));
      const float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), static_cast<int>(bits % 17) - 35);
      const T element(static_cast<T>(value));
      std::memcpy(bytes.data() + i * size_of(dtype), static_cast<const void*>(&element), sizeof element);
    }
  });
  return bytes;
}

std::string same_bits_on_all_ranks(Communicator& c) {
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != Collective::all_reduce) continue;
    c.choose(algorithm.what, algorithm.name, 2);
    std::vector<int> hosts;
    for (int r = 0; r < c.size(); ++r) hosts.push_back(c.size() % 2 == 0 ? r / 2 : 0);
    c.pretend_hosts(hosts);
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Redop op : {Redop::sum, Redop::avg}) {
        const std::int64_t count = 1009;
        Bytes x = random_floats(dtype, count, c.rank());
        c.all_reduce({x.data(), count, dtype}, op);
        const auto bytes = static_cast<std::int64_t>(x.size());
        Bytes all(x.size() * static_cast<std::size_t>(c.size()));
        c.all_gather({x.data(), bytes, DType::u8}, {all.data(), bytes * c.size(), DType::u8});
        for (int r = 0; r < c.size(); ++r)
          if (std::memcmp(all.data() + r * bytes, x.data(), x.size()) != 0)
            return fmt::format("{} of {} by {}: ranks {} and {} have different bits",
                               redop_names[static_cast<std::size_t>(op)], name_of(dtype), algorithm.name, c.rank(), r);
      }
  }
  return "";
}

// Rank r contributes 3r − 7 (for u8: 3r). The sum of these values is not always divisible by the number of ranks. Averages
// of integers are truncated toward zero.
std::string averages_in_every_type(Communicator& c) {
  const int p = c.size();
  const std::int64_t count = 2 * p + 1;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != Collective::all_reduce && algorithm.what != Collective::reduce &&
        algorithm.what != Collective::reduce_scatter)
      continue;
    c.choose(algorithm.what, algorithm.name);
    for (const DType dtype : all_dtypes) {
      Problem problem = Problem::even(algorithm.what, count, p, p - 1);
      problem.rank = c.rank();
      Trial trial(problem, dtype, Redop::avg, c.allocator());  // only its buffers are used
      const int shift = dtype == DType::u8 ? 0 : 7;
      int sum = 0;
      for (int r = 0; r < p; ++r) sum += 3 * r - shift;
      std::string wrong;
      visit(dtype, [&]<class T>(Type<T>) {
        for (std::int64_t i = 0; i < count; ++i) put<T>(trial.input().data, i, 3 * c.rank() - shift);
        c.run(trial.call());
        using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const double wanted = std::is_integral_v<T>
                                  ? sum / p
                                  : static_cast<double>(static_cast<Wide>(T(static_cast<Wide>(sum) / static_cast<Wide>(p))));
        for (std::int64_t i = 0; i < problem.output_count(); ++i)
          if (got<T>(trial.output().data, i) != wanted)
            wrong = fmt::format("avg of {} by {} {} is {}, not {}", name_of(dtype), name_of(algorithm.what), algorithm.name,
                                got<T>(trial.output().data, i), wanted);
      });
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

// Rank 0 contributes 1, and every other rank contributes half a unit in the last place of 1. In a 16-bit type, 1 plus one
// half rounds to 1, but 1 plus two halves does not. An algorithm in which one rank adds all values rounds the sum only once.
// In a ring, the sum of block b starts at rank b + 1 and is rounded at every hop until it ends at rank b.
template <class T>
float given_half(int rank) {
  return rank == 0 ? 1.0f : std::is_same_v<T, f16> ? 0x1p-11f : 0x1p-8f;
}

template <class T>
float sum_of_halves(const std::string& algorithm, int block, int size) {
  float sum = given_half<T>((block + 1) % size);
  for (int k = 2; k <= size; ++k) {
    sum += given_half<T>((block + k) % size);
    if (algorithm == "ring") sum = static_cast<float>(T(sum));
  }
  return static_cast<float>(T(sum));
}

template <class T>
std::string halves_of(Communicator& c, DType dtype) {
  const int p = c.size();
  for (const char* name : {"one_shot", "direct", "ring"}) {
    c.choose(Collective::all_reduce, name);
    std::vector<T> x(static_cast<std::size_t>(p), T(given_half<T>(c.rank())));
    c.all_reduce({x.data(), p, dtype});
    for (int block = 0; block < p; ++block)
      if (const float found = static_cast<float>(x[static_cast<std::size_t>(block)]);
          found != sum_of_halves<T>(name, block, p))
        return fmt::format("{} {}, block {}: {}, not {}", name, name_of(dtype), block, found,
                           sum_of_halves<T>(name, block, p));
  }
  return "";
}

std::string halves_are_rounded_once_a_sum(Communicator& c) {
  const std::string first = halves_of<f16>(c, DType::f16), second = halves_of<bf16>(c, DType::bf16);
  return first + second;
}

constexpr Check value_checks[] = {
    {"min and max of odd values", extremes_of_odd_values},
    {"the same bits on all ranks", same_bits_on_all_ranks},
    {"averages in every type", averages_in_every_type},
    {"16-bit sums are rounded once, or at every hop of a ring", halves_are_rounded_once_a_sum},
};

}  // namespace

TEST_CASE("reductions give the right bits on threads", "[threads]") { on_thread_worlds(value_checks, {1, 2, 3, 5, 8}); }
TEST_CASE("reductions give the right bits on every backend", "[spmd][hosts]") { on_every_backend(value_checks); }
