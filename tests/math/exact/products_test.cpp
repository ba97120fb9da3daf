#include <chrono>
#include <cmath>
#include <numeric>

#include "src/math/exact/fixed_point.hpp"
#include "tests/catch.hpp"
#include "tests/math/exact/bits.hpp"

using namespace chorale;

namespace {

// Computes y[m,n] by definition. For each block of k, a chain of fused multiply-adds runs in f32. Each chain is rounded to
// an integer, and the integers are added to y.
void plain_blocks(const float* x, std::int64_t along, std::int64_t across, const float* w, std::int64_t m, std::int64_t n,
                  std::int64_t k, std::int64_t block, double scale, std::int64_t* y) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t start = 0; start < k; start += block) {
        float chain = 0;
        for (std::int64_t l = start; l < std::min(start + block, k); ++l)
          chain = std::fma(x[i * along + l * across], w[l * n + j], chain);
        sum += std::llrint(chain * scale);
      }
      y[i * n + j] += sum;
    }
}

Tensor plain_product(Desk& desk, const Tensor& x, const Tensor& w, const Tensor* bias) {
  const std::int64_t m = x.dim(0), k = x.dim(1), n = w.dim(1);
  const Tensor y = desk.empty({m, n}, DType::f32);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float chain = 0;
      for (std::int64_t l = 0; l < k; ++l)
        chain = std::fma(x.values<float>()[static_cast<std::size_t>(i * k + l)],
                         w.values<float>()[static_cast<std::size_t>(l * n + j)], chain);
      y.values<float>()[static_cast<std::size_t>(i * n + j)] =
          bias ? chain + bias->values<float>()[static_cast<std::size_t>(j)] : chain;
    }
  return y;
}

std::vector<double> product_in_double(const Tensor& x, const Tensor& w) {
  const auto a = doubles(x), b = doubles(w);
  const std::size_t m = static_cast<std::size_t>(x.dim(0)), k = static_cast<std::size_t>(x.dim(1)),
                    n = static_cast<std::size_t>(w.dim(1));
  std::vector<double> y(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t j = 0; j < n; ++j) y[i * n + j] += a[i * k + l] * b[l * n + j];
  return y;
}

struct Size {
  std::int64_t m, k, n, block;
};
// Sizes with partial tiles in every direction and short last blocks. In some sizes, k exceeds the block that the kernel
// packs at a time, so chains and sums continue in the next block. The last two sizes have more rows or columns than the
// kernel packs at a time.
constexpr Size sizes[] = {{1, 1, 1, 1},       {1, 33, 100, 8},     {3, 17, 31, 5},     {6, 64, 64, 64},
                          {7, 100, 65, 32},   {31, 48, 33, 16},    {100, 31, 17, 100}, {13, 1100, 70, 64},
                          {20, 1537, 5, 700}, {2060, 515, 3, 512}, {7, 520, 150, 512}};

}  // namespace

TEST_CASE("an exact product is a chain over k, for any tiles, threads and order of the weights") {
  Desk desk;
  const auto exact = exact_numerics();
  for (const auto& [m, k, n, block] : sizes) {
    CAPTURE(m, k, n);
    const Tensor x = desk.random({m, k}, DType::f32), w = desk.random({k, n}, DType::f32), wt = transposed(desk, w);
    const Tensor bias = desk.random({n}, DType::f32), y = desk.filled({m, n}, DType::f32, NAN);
    const Tensor plain = plain_product(desk, x, w, nullptr), shifted = plain_product(desk, x, w, &bias);
    CHECK(distance(doubles(plain), product_in_double(x, w)) < 1e-5);
    for (const int threads : {1, 2, 3}) {
      exact->product(x, w, false, nullptr, y, Queue{threads});
      CHECK(same_bits(y, plain));
      exact->product(x, wt, true, &bias, y, Queue{threads});
      CHECK(same_bits(y, shifted));
    }
  }
}

TEST_CASE("an exact partial product is the sum of its blocks' chains") {
  Desk desk;
  const auto exact = exact_numerics();
  for (const auto& [m, k, n, block] : sizes) {
    CAPTURE(m, k, n, block);
    SumSite site{.name = "y", .sum = SumOf::activations, .addends = 12};
    const Tensor x = desk.random({m, k}, DType::f32), w = desk.random({k, n}, DType::f32), wt = transposed(desk, w);
    const Tensor sums = desk.filled({m, n}, DType::i64, 77), y = desk.empty({m, n}, DType::f32), plain = zeros(desk, {m, n});
    plain_blocks(x.values<float>().data(), k, 1, w.values<float>().data(), m, n, k, block, 0x1p36,
                 plain.values<std::int64_t>().data());
    for (const int threads : {1, 2, 3})
      for (const bool turned : {false, true}) {
        exact->partial_product(x, turned ? wt : w, turned, block, sums, site, Queue{threads});
        CHECK(same_bits(sums, plain));
      }
    exact->settle(sums, y, site, Queue{2});
    CHECK(distance(doubles(y), product_in_double(x, w)) < 1e-6);
    exact->check(site);
  }
}

TEST_CASE("the ranks' partial products add up to the product of one rank if each rank holds whole blocks") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t m = 19, n = 70, block = 8, blocks = 11, k = blocks * block - 3;  // the last block is short
  const Tensor x = desk.random({m, k}, DType::f32), w = desk.random({k, n}, DType::f32), whole = zeros(desk, {m, n});
  SumSite site{.name = "y", .sum = SumOf::activations, .addends = blocks};
  exact->partial_product(x, w, false, block, whole, site, Queue{});

  // Each rank's columns begin at a multiple of `unit`. If `settles` is true, ranks add floats instead of integers, as if the
  // message type were wrong.
  const auto over_ranks = [&](std::int64_t ranks, std::int64_t unit, bool settles) {
    SumSite of_rank{.name = "y", .sum = SumOf::activations, .addends = blocks};
    const std::int64_t units = (k + unit - 1) / unit;
    const Tensor total = zeros(desk, {m, n}), part = zeros(desk, {m, n}), y = desk.empty({m, n}, DType::f32),
                 sum = desk.filled({m, n}, DType::f32, 0);
    for (std::int64_t rank = ranks - 1; rank >= 0; --rank) {
      const std::int64_t first = units * rank / ranks * unit, last = std::min(units * (rank + 1) / ranks * unit, k);
      exact->partial_product(columns_of(desk, x, first, last - first), w.narrow(first, last - first), false, block, part,
                             of_rank, Queue{});
      exact->settle(part, y, of_rank, Queue{});
      for (std::size_t i = 0; i < sum.values<float>().size(); ++i) sum.values<float>()[i] += y.values<float>()[i];
      add(total, part);
    }
    exact->settle(total, y, of_rank, Queue{});
    return std::tuple{settles ? sum : total, settles ? y : whole, of_rank.highest};
  };
  for (std::int64_t ranks = 1; ranks <= 5; ++ranks) {
    const auto [sum, expected, highest] = over_ranks(ranks, block, false);
    CHECK(same_bits(sum, expected));
    CHECK(highest == site.highest);
  }
  // Negative controls: if a shard boundary is inside a block, the results are not bit-identical. Sums of floats are not
  // bit-identical either.
  const auto [cut, expected, highest] = over_ranks(2, 3, false);
  CHECK_FALSE(same_bits(cut, expected));
  const auto [floats, settled, other] = over_ranks(3, block, true);
  CHECK_FALSE(same_bits(floats, settled));
}

TEST_CASE("exact weight gradients of uneven leaves are the sum over the leaves") {
  const auto exact = exact_numerics(), fast = fast_numerics();
  for (const std::vector<std::int64_t>& leaves : uneven_leaves()) {
    Desk desk;
    const std::int64_t rows = std::accumulate(leaves.begin(), leaves.end(), std::int64_t{0}), k = 21, n = 75;
    const Tensor x = desk.random({rows, k}, DType::f32), dy = desk.random({rows, n}, DType::f32, 0.1);
    const Tensor wanted = zeros(desk, {k, n}), dw = zeros(desk, {k, n});
    SumSite site{.name = "dw", .sum = SumOf::weight_gradients, .addends = 2000}, site_of_leaves = site;
    for (std::int64_t i = 0, first = 0; i < std::ssize(leaves); ++i) {
      const std::int64_t leaf = leaves[static_cast<std::size_t>(i)];
      if (leaf > 0) exact->add_outer(x.narrow(first, leaf), dy.narrow(first, leaf), leaf, wanted, site, {});
      first += leaf;
    }
    exact->add_outer_by_leaves(x, dy, leaves, dw, site_of_leaves, Queue{2});
    CHECK(same_bits(dw, wanted));
    CHECK(site_of_leaves.highest == site.highest);
    const std::vector<std::int64_t> too_many{rows + 1};
    CHECK_THROWS(exact->add_outer_by_leaves(x, dy, too_many, dw, site, {}));
    CHECK_THROWS(fast->add_outer_by_leaves(x, dy, too_many, desk.filled({k, n}, DType::f32, 0), site, {}));
  }
}

TEST_CASE("exact weight gradients do not depend on the split into micro-batches") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t samples = 8, tokens = 48, rows = samples * tokens, k = 21, n = 75;
  const Tensor x = desk.random({rows, k}, DType::f32), dy = desk.random({rows, n}, DType::f32, 0.1);
  const auto gradient = [&](std::int64_t splits, std::int64_t leaf, bool backwards, int threads) {
    SumSite site{.name = "dw", .sum = SumOf::weight_gradients, .addends = rows / 16};
    const Tensor dw = zeros(desk, {k, n});
    for (std::int64_t s = 0; s < splits; ++s) {
      const std::int64_t length = rows / splits, first = length * (backwards ? splits - 1 - s : s);
      exact->add_outer(x.narrow(first, length), dy.narrow(first, length), leaf, dw, site, Queue{threads});
    }
    exact->check(site);
    return dw;
  };
  const Tensor plain = zeros(desk, {k, n}), whole = gradient(1, 16, false, 1);
  plain_blocks(x.values<float>().data(), 1, k, dy.values<float>().data(), k, n, rows, 16, 0x1p36,
               plain.values<std::int64_t>().data());
  CHECK(same_bits(whole, plain));
  for (const std::int64_t splits : {1, 2, 4, 8, 24})
    for (const int threads : {1, 2}) CHECK(same_bits(gradient(splits, 16, splits % 4 == 0, threads), whole));
  CHECK_FALSE(same_bits(gradient(1, 24, false, 1), whole));  // control: a different leaf size changes the bits

  SumSite site{.name = "dw", .sum = SumOf::weight_gradients, .addends = rows / 16};
  std::vector<double> values = doubles(whole);
  for (double& v : values) v *= exact->unit(site);
  CHECK(distance(values, product_in_double(transposed(desk, x), dy)) < 1e-6);
  CHECK_THROWS(exact->add_outer(x, dy, 100, whole, site, Queue{}));
}

TEST_CASE("how fast exact products are", "[!benchmark]") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t m = 2048, k = 384, n = 1152;
  const Tensor x = desk.random({m, k}, DType::f32), w = desk.random({k, n}, DType::f32),
               dy = desk.random({m, n}, DType::f32), y = desk.empty({m, n}, DType::f32), sums = zeros(desk, {m, n}),
               dw = zeros(desk, {k, n});
  SumSite site{.name = "y", .addends = 64};
  const auto time = [&](const std::string& what, const auto& call) {
    double least = INFINITY;
    for (int i = 0; i < 6; ++i) {
      const auto start = std::chrono::steady_clock::now();
      call();
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    fmt::print("{:28}{:8.0f} GFLOP/s\n", what, 2e-9 * static_cast<double>(m * n * k) / least);
  };
  for (const int threads : {1, 2}) {
    const Queue queue{threads};
    time(fmt::format("product, {} threads", threads), [&] { exact->product(x, w, false, nullptr, y, queue); });
    for (const std::int64_t block : {64, 256}) {
      time(fmt::format("partial product of {}", block),
           [&] { exact->partial_product(x, w, false, block, sums, site, queue); });
      time(fmt::format("outer product of {}", block), [&] { exact->add_outer(x, dy, block, dw, site, queue); });
    }
  }
}
