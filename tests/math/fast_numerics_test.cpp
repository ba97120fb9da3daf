#include <fmt/core.h>
#include <array>

#include <algorithm>

#include <chorale/clock.hpp>
#include "src/math/numerics.hpp"
#include "src/math/reference/sums.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;

namespace {

constexpr DType floating[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr std::int64_t odd[] = {1, 3, 17, 31, 33, 100, 1025};

DType sum_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
double sum_tolerance(DType dtype) { return dtype == DType::f64 ? 1e-14 : 1e-5; }

Tensor ids_of(Desk& desk, std::int64_t rows, std::uint64_t below) {
  const Tensor ids = desk.empty({rows}, DType::i32);
  const Random random{.seed = 3};
  for (std::size_t i = 0; i < ids.values<std::int32_t>().size(); ++i)
    ids.values<std::int32_t>()[i] = static_cast<std::int32_t>(random.bits(i) % below);
  return ids;
}

// Runs `work` on a fresh tensor with 1, 2 and 3 threads. The results must be bit-identical. Returns the result.
std::vector<double> same_for_all_threads(const std::function<Tensor()>& fresh,
                                         const std::function<void(const Tensor&, const Queue&)>& work) {
  std::vector<double> first;
  for (const int threads : {1, 2, 3}) {
    const Tensor result = fresh();
    work(result, {threads});
    if (threads == 1) first = doubles(result);
    REQUIRE(doubles(result) == first);
  }
  return first;
}

}  // namespace

TEST_CASE("fast sums over tokens match the reference's, with the same bits on any number of threads") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  for (const DType dtype : floating)
    for (const std::int64_t rows : odd)
      for (const std::int64_t n : odd) {
        INFO(name_of(dtype) << " [" << rows << ", " << n << "]");
        const DType summed = sum_type(dtype);
        const Tensor dy = desk.random({rows, n}, dtype), x = desk.random({rows, n}, dtype, 3);
        const Tensor stats = desk.random({rows, 2}, summed, 2);
        const auto dys = doubles(dy), xs = doubles(x), of = doubles(stats);
        const auto ones = [&] { return desk.filled({n}, summed, 1); };

        std::vector<double> columns(static_cast<std::size_t>(n), 1), gain = columns, shift = columns;
        reference::add_columns(dys.data(), columns.data(), rows, n);
        reference::add_norm_gradients(dys.data(), xs.data(), of.data(), gain.data(), shift.data(), rows, n);
        const auto fast = same_for_all_threads(
            ones, [&](const Tensor& db, const Queue& queue) { numerics->add_columns(dy, db, site, queue); });
        REQUIRE(distance(fast, columns) < sum_tolerance(dtype));
        const Tensor dshift = ones();
        numerics->add_norm_gradients(NormKind::layer, dy, x, stats, ones(), &dshift, site, {});
        REQUIRE(distance(doubles(dshift), shift) < sum_tolerance(dtype));
        const auto fast_gain = same_for_all_threads(ones, [&](const Tensor& dgain, const Queue& queue) {
          numerics->add_norm_gradients(NormKind::rms, dy, x, stats, dgain, nullptr, site, queue);
        });
        REQUIRE(distance(fast_gain, gain) < sum_tolerance(dtype));
      }
}

TEST_CASE("rows are added to this rank's part of a table") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  for (const DType dtype : floating)
    for (const std::int64_t rows : odd)
      for (const std::int64_t n : {1, 33, 100}) {
        INFO(name_of(dtype) << " [" << rows << ", " << n << "]");
        const Tensor ids = ids_of(desk, rows, 20), dy = desk.random({rows, n}, dtype);
        const auto dys = doubles(dy);
        std::vector<double> wanted(static_cast<std::size_t>(7 * n), 2);
        reference::add_rows(ids.values<std::int32_t>().data(), 5, dys.data(), wanted.data(), 7, rows, n);
        const auto fast = same_for_all_threads(
            [&] {
              return desk.filled({7, n}, sum_type(dtype), 2);
            },
            [&](const Tensor& table, const Queue& q) { numerics->add_rows(ids, 5, dy, table, site, q); });
        REQUIRE(distance(fast, wanted) < sum_tolerance(dtype));
      }
}

TEST_CASE("exponentials are summed row by row, with the same bits on any number of threads") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  for (const DType dtype : floating)
    for (const std::int64_t rows : {1, 3, 33})
      for (const std::int64_t n : odd) {
        INFO(name_of(dtype) << " [" << rows << ", " << n << "]");
        const Tensor logits = desk.random({rows, n}, dtype, 9), maxima = desk.filled({rows}, sum_type(dtype), 9);
        const auto ls = doubles(logits), ms = doubles(maxima);
        std::vector<double> wanted(static_cast<std::size_t>(rows));
        reference::sum_exponentials(ls.data(), ms.data(), wanted.data(), rows, n);
        const auto fast = same_for_all_threads(
            [&] { return desk.filled({rows}, sum_type(dtype), NAN); },
            [&](const Tensor& sums, const Queue& q) { numerics->sum_exponentials(logits, maxima, sums, site, q); });
        REQUIRE(distance(fast, wanted) < sum_tolerance(dtype));
        // The result of a row alone is bit-identical to the result of this row in a larger tensor.
        const Tensor alone = desk.empty({1}, sum_type(dtype));
        numerics->sum_exponentials(logits.narrow(rows - 1, 1), maxima.narrow(rows - 1, 1), alone, site, {});
        REQUIRE(doubles(alone)[0] == fast.back());
      }
  const Tensor padded = desk.filled({1, 40}, DType::f32, -INFINITY), sum = desk.filled({1}, DType::f32, NAN);
  numerics->sum_exponentials(padded, desk.filled({1}, DType::f32, 3), sum, site, {});
  CHECK(doubles(sum) == std::vector<double>{0});
}

TEST_CASE("losses and squares are summed in f64") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t count : {0, 1, 15, 16, 17, 63, 64, 65, 5003}) {
      INFO(name_of(dtype) << ", " << count);
      const Tensor values = desk.random({count}, dtype);
      double losses = 0.5, squares = 0;
      for (const double v : doubles(values)) {
        losses += v;
        squares += 9 * v * v;
      }
      const Tensor total = desk.filled({1}, DType::f64, 0.5);
      numerics->add_losses(values, total, site, {});
      CHECK(std::abs(doubles(total)[0] - losses) < 1e-11);
      SquareSum one, three;
      numerics->add_squares(std::array{ScaledSlice{values.slice(), 3}}, one, {1});
      numerics->add_squares(std::array{ScaledSlice{values.slice(), 3}}, three, {3});
      CHECK(std::abs(one.fast - squares) <= 1e-13 * squares);
      CHECK(one.fast == three.fast);
      CHECK(numerics->root(one) == std::sqrt(one.fast));
      numerics->add_squares(std::array{ScaledSlice{values.slice(), 3}}, one, {1});
      CHECK(std::abs(one.fast - 2 * squares) <= 2e-13 * squares);
    }
  for (const DType narrow : {DType::bf16, DType::f16}) {  // ranks can sum gradients in these types
    const Tensor values = desk.random({5003}, narrow);
    double squares = 0;
    for (const double v : doubles(values)) squares += 9 * v * v;
    SquareSum sum;
    numerics->add_squares(std::array{ScaledSlice{values.slice(), 3}}, sum, {2});
    CHECK(std::abs(sum.fast - squares) <= 1e-13 * squares);
  }
  CHECK(numerics->unit(site) == 1);
  CHECK_NOTHROW(numerics->check(site));
}

TEST_CASE("in fast numerics, a partial product is the product, and settle copies it if needed") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  for (const DType dtype : floating) {
    CHECK(numerics->partial_type(dtype) == dtype);
    CHECK(numerics->gradient_type(dtype) == sum_type(dtype));
    const Tensor x = desk.random({17, 31}, dtype), w = desk.random({31, 33}, dtype);
    const Tensor y = desk.empty({17, 33}, dtype), partial = desk.empty({17, 33}, dtype),
                 settled = desk.empty({17, 33}, dtype);
    numerics->product(x, w, false, nullptr, y, {});
    numerics->partial_product(x, w, false, 8, partial, site, {});
    CHECK(doubles(partial) == doubles(y));
    for (const int threads : {1, 2}) {
      numerics->settle(partial, settled, site, {threads});
      CHECK(doubles(settled) == doubles(y));
    }
    numerics->settle(partial, partial, site, {});
    CHECK(doubles(partial) == doubles(y));
    const Tensor dw = desk.filled({31, 33}, sum_type(dtype), 0), twice = desk.filled({31, 33}, sum_type(dtype), 0);
    numerics->add_outer(x, y, 1, dw, site, {});
    numerics->add_outer(x, y, 17, twice, site, {});
    numerics->add_outer(x, y, 17, twice, site, {});
    auto doubled = doubles(dw);
    for (double& v : doubled) v *= 2;
    CHECK(distance(doubles(twice), doubled) < 1e-6);
  }
}

TEST_CASE("fast numerics computes nothing for phantom tensors and refuses tensors that do not fit") {
  PhantomMemory nothing;
  Ledger ledger;
  Allocator allocator(nothing, ledger);
  const auto phantom = [&](Shape shape, DType dtype = DType::bf16) {
    return Tensor(allocator, std::move(shape), dtype, Category::workspace);
  };
  const auto numerics = fast_numerics();
  SumSite site;
  const Tensor dy = phantom({6, 5}), db = phantom({5}, DType::f32), stats = phantom({6, 2}, DType::f32);
  const Tensor ids = phantom({6}, DType::i32), table = phantom({9, 5}, DType::f32), row = phantom({6}, DType::f32);
  numerics->add_columns(dy, db, site, {});
  numerics->add_norm_gradients(NormKind::layer, dy, dy, stats, db, &db, site, {});
  numerics->add_rows(ids, 0, dy, table, site, {});
  numerics->sum_exponentials(dy, row, row, site, {});
  numerics->add_losses(row, phantom({1}, DType::f64), site, {});
  numerics->settle(dy, phantom({6, 5}), site, {});
  SquareSum sum;
  numerics->add_squares(std::array{ScaledSlice{db.slice(), 1}}, sum, {});
  CHECK(sum.fast == 0);

  CHECK_THROWS(numerics->add_columns(dy, phantom({4}, DType::f32), site, {}));
  CHECK_THROWS(numerics->add_columns(dy, phantom({5}), site, {}));
  CHECK_THROWS(numerics->add_norm_gradients(NormKind::layer, dy, phantom({6, 4}), stats, db, &db, site, {}));
  CHECK_THROWS(numerics->add_norm_gradients(NormKind::layer, dy, dy, phantom({6, 2}), db, &db, site, {}));
  CHECK_THROWS(numerics->add_rows(phantom({5}, DType::i32), 0, dy, table, site, {}));
  CHECK_THROWS(numerics->add_rows(ids, 0, dy, phantom({9, 4}, DType::f32), site, {}));
  CHECK_THROWS(numerics->sum_exponentials(dy, phantom({5}, DType::f32), row, site, {}));
  CHECK_THROWS(numerics->add_losses(row, phantom({1}, DType::f32), site, {}));
  CHECK_THROWS(numerics->settle(dy, phantom({6, 4}), site, {}));
}

TEST_CASE("how fast sums over tokens are", "[!benchmark]") {
  const auto numerics = fast_numerics();
  Desk desk;
  SumSite site;
  constexpr std::int64_t rows = 2048, n = 1536, width = 384, words = 4096;
  const auto print = [](const char* what, DType dtype, std::int64_t bytes, auto&& work) {
    const SystemClock clock;
    double best = INFINITY;
    for (int i = 0; i < 20; ++i) {
      const double start = clock.seconds();
      work();
      best = std::min(best, clock.seconds() - start);
    }
    fmt::print("{:<20} {:<5} {:8.1f} us {:7.1f} GB/s\n", what, name_of(dtype), best * 1e6,
               static_cast<double>(bytes) / best * 1e-9);
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor dy = desk.random({rows, n}, dtype), db = desk.filled({n}, DType::f32, 0);
    print("add_columns", dtype, dy.bytes(), [&] { numerics->add_columns(dy, db, site, {}); });
    const Tensor x = desk.random({rows, width}, dtype), stats = desk.random({rows, 2}, DType::f32);
    const Tensor gain = desk.filled({width}, DType::f32, 0), shift = desk.filled({width}, DType::f32, 0);
    print("add_norm_gradients", dtype, 2 * x.bytes(),
          [&] { numerics->add_norm_gradients(NormKind::layer, x, x, stats, gain, &shift, site, {}); });
    const Tensor ids = ids_of(desk, rows, words), table = desk.filled({words, width}, DType::f32, 0);
    print("add_rows", dtype, x.bytes() + 2 * rows * width * 4, [&] { numerics->add_rows(ids, 0, x, table, site, {}); });
    const Tensor logits = desk.random({rows, words}, dtype), row = desk.filled({rows}, DType::f32, 1);
    const Tensor sums = desk.empty({rows}, DType::f32);
    print("sum_exponentials", dtype, logits.bytes(), [&] { numerics->sum_exponentials(logits, row, sums, site, {}); });
  }
  const Tensor gradient = desk.random({1 << 22}, DType::f32);
  print("add_squares", DType::f32, gradient.bytes(), [&] {
    SquareSum sum;
    numerics->add_squares(std::array{ScaledSlice{gradient.slice(), 1}}, sum, {});
  });
}
