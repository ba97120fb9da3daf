#include <array>
#include <bit>
#include <cmath>
#include <limits>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "src/math/exact/fixed_point.hpp"
#include "tests/catch.hpp"
#include "tests/math/exact/bits.hpp"

using namespace chorale;

TEST_CASE("only the kind of a sum and its number of addends determine the exponent") {
  const auto exponent = [](SumOf sum, std::int64_t addends) {
    return exact::exponent({.name = "s", .sum = sum, .addends = addends});
  };
  CHECK(exponent(SumOf::activations, 1) == 36);
  CHECK(exponent(SumOf::activations, 64) == 36);
  CHECK(exponent(SumOf::activations, 65) == 35);
  CHECK(exponent(SumOf::input_gradients, 24) == 40);
  CHECK(exponent(SumOf::weight_gradients, 4096) == 36);
  CHECK(exponent(SumOf::weight_gradients, 4097) == 35);
  CHECK(exponent(SumOf::token_gradients, 1000000) == 30);
  CHECK(exponent(SumOf::exponentials, 1 << 18) == 44);
  CHECK(exponent(SumOf::exponentials, (1 << 18) + 1) == 43);
  CHECK(exponent(SumOf::losses, 1000000) == 30);
  CHECK_THROWS(exponent(SumOf::losses, 0));
  CHECK(exact_numerics()->unit({.name = "s", .sum = SumOf::losses, .addends = 9}) == 0x1p-30);
}

TEST_CASE("numbers are rounded to the nearest integer unit, ties to even, over the whole range") {
  const float most = 0x1p62f;
  std::vector<float> all = {0.0f,        -0.0f,      0.5f,       -0.5f,  1.5f, 2.5f, -2.5f,
                            0.49999997f, 8388607.5f, 8388608.0f, 1e-40f, most, -most};
  const Random random{.seed = 5};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const float y =
        std::ldexp(static_cast<float>(random.uniform(2 * i)) - 0.5f, static_cast<int>(random.bits(2 * i + 1) % 64) - 1);
    all.push_back(y);
    all.push_back(std::round(2 * y) / 2);  // many of these values are ties
  }
  std::size_t wrong = 0;
  for (const float y : all) wrong += exact::nearest_integer(y) != std::llrint(static_cast<double>(y));
  CHECK(wrong == 0);
}

TEST_CASE("−0 adds nothing and never appears in a result") {
  Desk desk;
  const auto exact = exact_numerics();
  SumSite site{.name = "s", .addends = 1};
  const Tensor sums = zeros(desk, {3}), y = desk.filled({3}, DType::f32, 1);
  exact->add_columns(desk.filled({2, 3}, DType::f32, -0.0), sums, site, Queue{});
  exact->settle(sums, y, site, Queue{});
  CHECK(site.highest == 0);
  CHECK(same_bits(sums, zeros(desk, {3})));
  for (const float v : y.values<float>()) CHECK(std::bit_cast<std::uint32_t>(v) == 0);
}

TEST_CASE("a sum of addends at the limit does not overflow, and the error for a greater addend names the site") {
  Desk desk;
  const auto exact = exact_numerics();
  for (const std::int64_t addends : {1, 3, 7, 64, 100, 1023}) {
    CAPTURE(addends);
    SumSite site{.name = "block.3.bias", .sum = SumOf::token_gradients, .addends = addends};
    const auto limit = static_cast<float>(exact::greatest_addend(site) * exact->unit(site));
    const float below =
        static_cast<double>(limit) > exact::greatest_addend(site) * exact->unit(site) ? std::nextafter(limit, 0.0f) : limit;
    const Tensor sums = zeros(desk, {2});
    exact->add_columns(desk.filled({addends, 2}, DType::f32, -below), sums, site, Queue{});
    CHECK_NOTHROW(exact->check(site));
    CHECK(doubles(sums)[0] * exact->unit(site) == Approx(-static_cast<double>(below) * static_cast<double>(addends)));
    exact->add_columns(desk.filled({1, 2}, DType::f32, std::nextafter(below, INFINITY)), sums, site, Queue{});
    const std::string said = refusal([&] { exact->check(site); });
    CHECK_THAT(said, says("block.3.bias: numbers have grown too large"));
    CHECK_THAT(said, says("addends"));
    CHECK_THAT(said, says("--numerics fast"));
  }
}

TEST_CASE("NaN and Inf are reported wherever they enter") {
  Desk desk;
  const auto exact = exact_numerics();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {NAN, -NAN, infinity, -infinity, 3e38f};  // 3e38 overflows in the units of the sum
  for (const float bad : special)
    for (const int threads : {1, 2}) {
      const Queue queue{threads};
      const Tensor x = desk.random({80, 40}, DType::f32), w = desk.random({40, 70}, DType::f32),
                   dy = desk.random({80, 70}, DType::f32);
      dy.values<float>()[79 * 70 + 69] = bad;
      SumSite product{.name = "product", .addends = 5}, outer{.name = "outer", .sum = SumOf::weight_gradients, .addends = 5},
          columns{.name = "columns", .sum = SumOf::token_gradients, .addends = 80};
      exact->add_outer(x, dy, 16, zeros(desk, {40, 70}), outer, queue);
      exact->add_columns(dy, zeros(desk, {70}), columns, queue);
      exact->partial_product(dy, w, true, 16, zeros(desk, {80, 40}), product, queue);
      for (SumSite* site : {&product, &outer, &columns})
        CHECK_THAT(refusal([&] { exact->check(*site); }), says(site->name + ": numbers are not finite"));
    }
}

TEST_CASE("a norm that is NaN or too large is refused") {
  Desk desk;
  const auto exact = exact_numerics();
  const auto sum = [&](float value, std::int64_t count) {
    SquareSum squares;
    exact->add_squares(std::array{ScaledSlice{desk.filled({count}, DType::f32, value).slice(), 1}}, squares, Queue{2});
    return squares;
  };
  CHECK(exact->root(sum(262143.0f, 1)) == Approx(262143));
  CHECK_THROWS(exact->root(sum(262144.0f, 1)));
  CHECK_THROWS(exact->root(sum(NAN, 1)));
  CHECK_THROWS(exact->root(sum(-INFINITY, 3)));
  CHECK_THROWS(exact->root(sum(8192.0f, 1024)));  // the sum is too large, although no element is too large
  // Both sums saturate. Without saturation, the sum of each thread's 4096 elements would wrap to 0.
  CHECK((sum(8192.0f, 1024).exact == sum(3e38f, 8192).exact));
}

TEST_CASE("exact numerics refuse other types and other floating-point modes") {
  Desk desk;
  const auto exact = exact_numerics();
  CHECK(exact->gradient_type(DType::f32) == DType::i64);
  CHECK(exact->partial_type(DType::f32) == DType::i64);
  for (const DType other : {DType::bf16, DType::f16, DType::f64}) {
    CHECK_THAT(refusal([&] { exact->gradient_type(other); }), says("exact numerics compute in f32"));
    CHECK_THAT(refusal([&] { exact->partial_type(other); }), says("exact numerics compute in f32"));
    const Tensor x = desk.filled({4, 4}, other, 1);
    CHECK_THAT(refusal([&] { exact->product(x, x, false, nullptr, x, Queue{}); }), says("exact numerics compute in f32"));
  }
#ifdef __x86_64__
  const unsigned int before = _mm_getcsr();
  // The three modes are: flush subnormal results, flush subnormal operands, round down.
  for (const unsigned int mode : {0x8000u, 0x0040u, 0x2000u}) {
    _mm_setcsr(before | mode);
    const std::string said = refusal([] { exact_numerics(); });
    _mm_setcsr(before);
    CHECK_THAT(said, says("IEEE"));
  }
#endif
}

TEST_CASE("exact numerics skip phantom tensors") {
  PhantomMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
  const auto exact = exact_numerics();
  const auto tensor = [&](Shape shape, DType dtype) {
    return Tensor(allocator, std::move(shape), dtype, Category::workspace);
  };
  const Tensor x = tensor({32, 32}, DType::f32), sums = tensor({32, 32}, DType::i64), row = tensor({32}, DType::i64),
               values = tensor({32}, DType::f32), stats = tensor({32, 2}, DType::f32), one = tensor({1}, DType::i64);
  SumSite site{.name = "s", .addends = 32};
  SquareSum squares;
  exact->product(x, x, true, &values, x, Queue{});
  exact->partial_product(x, x, false, 8, sums, site, Queue{});
  exact->settle(sums, x, site, Queue{});
  exact->add_outer(x, x, 8, sums, site, Queue{});
  exact->add_columns(x, row, site, Queue{});
  exact->add_norm_gradients(NormKind::rms, x, x, stats, row, nullptr, site, Queue{});
  exact->add_rows(tensor({32}, DType::i32), 0, x, sums, site, Queue{});
  exact->sum_exponentials(x, values, row, site, Queue{});
  exact->add_losses(values, one, site, {});
  exact->add_squares(std::array{ScaledSlice{sums.slice(), 1}}, squares, Queue{});
  CHECK(site.highest == 0);
  CHECK((squares.exact == 0));
}
