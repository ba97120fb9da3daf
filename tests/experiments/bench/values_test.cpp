// Tests that the input values of a benchmark reveal wrong results. In these tests, plain loops over the reference reduction
// stand in for collectives, in several orders. Correct results must count as correct, and the count `wrong` must include
// typical mistakes.
#include "experiments/bench/values.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/catch.hpp"

using namespace chorale;
using bench::Values;

namespace {

using Bytes = std::vector<std::byte>;

struct Vector {
  Vector(DType dtype, std::int64_t count) : bytes(static_cast<std::size_t>(count * size_of(dtype))) {
    slice = {bytes.data(), count, dtype, {}};
  }
  Bytes bytes;
  Slice slice;
};

std::vector<Bytes> inputs_of(const Values& values, DType dtype, std::int64_t count) {
  std::vector<Bytes> all;
  for (int r = 0; r < values.ranks; ++r) {
    Vector x(dtype, count);
    values.fill(r, x.slice, 0);
    all.push_back(std::move(x.bytes));
  }
  return all;
}

// Reduces the contributions one after another, and rounds to the type each time. This is the least exact method.
Vector reduced(const Values& values, DType dtype, std::int64_t count, const std::vector<int>& order) {
  const auto inputs = inputs_of(values, dtype, count);
  Vector out(dtype, count);
  out.bytes = inputs[static_cast<std::size_t>(order[0])];
  out.slice.data = out.bytes.data();
  for (std::size_t i = 1; i < order.size(); ++i) {
    const void* sources[] = {out.bytes.data(), inputs[static_cast<std::size_t>(order[i])].data()};
    reduce_reference(values.op, dtype, out.slice.data, sources, count);
  }
  if (values.op == Redop::avg) divide(dtype, out.slice.data, count, values.ranks);
  return out;
}

}  // namespace

TEST_CASE("benchmark sums are exact in every type, operator and order, and a missing contribution is counted") {
  for (const DType dtype : all_dtypes)
    for (const Redop op : {Redop::sum, Redop::prod, Redop::min, Redop::max, Redop::avg})
      for (const int ranks : {1, 2, 3, 7, 64, 255}) {
        INFO(name_of(dtype) << " " << redop_names[static_cast<int>(op)] << " of " << ranks);
        const std::int64_t count = ranks == 255 ? 100 : 2500;
        const Values values{Collective::all_reduce, op, ranks, 0, 0, 5};
        std::vector<int> order(static_cast<std::size_t>(ranks));
        std::iota(order.begin(), order.end(), 0);
        CHECK(values.wrong(0, reduced(values, dtype, count, order).slice, 0) == 0);
        std::reverse(order.begin(), order.end());
        std::rotate(order.begin(), order.begin() + ranks / 3, order.end());
        const Vector right = reduced(values, dtype, count, order);
        CHECK(values.wrong(0, right.slice, 0) == 0);
        Values later = values;
        later.round = 6;
        // With many ranks, mistakes are hard to see. Several ranks often hold the same minimum or maximum, and integer
        // averages are mostly 0.
        const bool settled = ranks > 7 && (op == Redop::min || op == Redop::max);
        const bool coarse = op == Redop::avg && !is_floating(dtype) && ranks > 7;
        if (!settled && !coarse) CHECK(later.wrong(0, right.slice, 0) > count / 8);
        if (ranks == 1 || settled || coarse) continue;
        order.pop_back();
        CHECK(values.wrong(0, reduced(values, dtype, count, order).slice, 0) > count / 16);
      }
}

TEST_CASE("benchmark values of collectives without sums are checked at their destination") {
  const int ranks = 3;
  const std::int64_t block = 700;
  for (const DType dtype : all_dtypes) {
    INFO(name_of(dtype));
    Values values{Collective::all_to_all, Redop::sum, ranks, 2, block, 1};
    const auto size = static_cast<std::size_t>(block * size_of(dtype));
    const auto inputs = inputs_of(values, dtype, ranks * block);
    Vector out(dtype, ranks * block);
    for (std::size_t from = 0; from < 3; ++from)
      std::memcpy(out.bytes.data() + from * size, inputs[from].data() + 1 * size, size);
    CHECK(values.wrong(1, out.slice, 0) == 0);
    CHECK(values.wrong(0, out.slice, 0) > 2000);

    values.what = Collective::all_gather;
    for (std::size_t from = 0; from < 3; ++from)
      std::memcpy(out.bytes.data() + from * size, inputs[from].data() + from * size, size);
    CHECK(values.wrong(0, out.slice, 0) == 0);
    std::swap(out.bytes[0], out.bytes[out.bytes.size() / 2 + 2 * static_cast<std::size_t>(size_of(dtype))]);
    CHECK(values.wrong(0, out.slice, 0) <= 2);

    values.what = Collective::scatter;
    const Slice second{const_cast<std::byte*>(inputs[2].data()) + size, block, dtype, {}};
    CHECK(values.wrong(1, second, block) == 0);
    CHECK(values.wrong(1, second, 0) > 600);
    values.what = Collective::broadcast;
    CHECK(values.wrong(0, {const_cast<std::byte*>(inputs[2].data()), 3 * block, dtype, {}}, 0) == 0);
    CHECK(values.wrong(0, {const_cast<std::byte*>(inputs[1].data()), 3 * block, dtype, {}}, 0) > 2000);
  }
}
