#include "src/math/products.hpp"

#include <fmt/core.h>

#include <algorithm>

#include <chorale/clock.hpp>
#include "src/base/host.hpp"
#include "src/math/peak.hpp"
#include "src/math/reference/product.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;

namespace {

constexpr DType product_types[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

// Sums are formed in f32 or f64, so the tolerance of a result depends on the type in which the result is stored.
double product_tolerance(DType stored) {
  return stored == DType::bf16 ? 4e-3 : stored == DType::f16 ? 5e-4 : stored == DType::f32 ? 1e-6 : 1e-14;
}

std::vector<double> exact_product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, std::int64_t n) {
  const auto xs = doubles(x), ws = doubles(w), biases = bias ? doubles(*bias) : std::vector<double>();
  std::vector<double> y(static_cast<std::size_t>(x.dim(0) * n));
  reference::product(xs.data(), ws.data(), transposed, bias ? biases.data() : nullptr, y.data(), x.dim(0), x.dim(1), n);
  return y;
}

// Each of the last three sizes exceeds the block that tiles pack at a time: the first size in m, the second in k, and the
// third in n (for an L2 cache of 512 KiB). Without AVX-512, the f32 product of the last size runs in tiles.
struct Sizes {
  std::int64_t m, k, n;
};
constexpr Sizes odd_products[] = {{1, 1, 1},     {1, 100, 33}, {3, 17, 31},    {31, 3, 1},    {33, 31, 100}, {100, 33, 17},
                                  {300, 64, 48}, {520, 5, 9},  {2100, 513, 3}, {5, 521, 170}, {35, 130, 512}};

}  // namespace

TEST_CASE("products match the reference for every type and odd size, with and without transposition and bias") {
  Desk desk;
  Products products;
  for (const DType dtype : product_types)
    for (const auto [m, k, n] : odd_products)
      for (const bool transposed : {false, true})
        for (const bool with_bias : {false, true})
          for (const DType stored : {dtype, DType::f32})
            for (const int threads : {1, 2}) {
              if (dtype == DType::f64 && stored != dtype) continue;
              const Tensor x = desk.random({m, k}, dtype), bias = desk.random({n}, dtype);
              const Tensor w = desk.random(transposed ? Shape{n, k} : Shape{k, n}, dtype);
              const Tensor y = desk.filled({m, n}, stored, NAN);
              products.product(x, w, transposed, with_bias ? &bias : nullptr, y, {threads});
              INFO(name_of(dtype) << " into " << name_of(stored) << ": " << m << "·" << k << "·" << n << ", transposed "
                                  << transposed << ", bias " << with_bias << ", threads " << threads);
              REQUIRE(distance(doubles(y), exact_product(x, w, transposed, with_bias ? &bias : nullptr, n)) <
                      product_tolerance(stored));
            }
}

TEST_CASE("outer products accumulate in f32, or in f64 if the inputs are f64") {
  Desk desk;
  Products products;
  for (const DType dtype : product_types)
    for (const auto [m, k, n] : odd_products)
      for (const int threads : {1, 2}) {
        const DType summed = dtype == DType::f64 ? DType::f64 : DType::f32;
        const Tensor x = desk.random({m, k}, dtype), dy = desk.random({m, n}, dtype), dw = desk.random({k, n}, summed, 5);
        const auto xs = doubles(x), dys = doubles(dy);
        auto wanted = doubles(dw);
        for (int twice = 0; twice < 2; ++twice) {
          reference::add_outer(xs.data(), dys.data(), wanted.data(), m, k, n);
          products.add_outer(x, dy, dw, {threads});
        }
        INFO(name_of(dtype) << ": " << m << "·" << k << "·" << n << ", threads " << threads);
        REQUIRE(distance(doubles(dw), wanted) < product_tolerance(summed));
      }
}

TEST_CASE("one Products object serves many addresses, and a matrix's columns may span several dims") {
  Desk desk;
  Products products;
  for (int place = 0; place < 3; ++place) {
    const Tensor x = desk.random({5, 2, 3}, DType::f32), w = desk.random({6, 8}, DType::f32);
    const Tensor y = desk.empty({5, 4, 2}, DType::f32), dw = desk.filled({6, 8}, DType::f32, 0);
    products.product(x, w, false, nullptr, y, {});
    CHECK(distance(doubles(y), exact_product(x.view({5, 6}), w, false, nullptr, 8)) < 1e-6);
    products.add_outer(x, y, dw, {});
    CHECK(norm(doubles(dw)) > 0);
  }
}

TEST_CASE("a product of 16-bit numbers is rounded once") {
  // In the sum 256 + 1 + … + 1, bf16 would lose each single 1. The sum of the ones is large enough not to be lost.
  Desk desk;
  Products products;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const double big = dtype == DType::bf16 ? 256 : 2048;
    const Tensor x = desk.filled({1, 9}, dtype, 1), w = desk.filled({9, 1}, dtype, 1), y = desk.empty({1, 1}, dtype);
    visit_floating(dtype, [&]<class T>(Type<T>) { w.values<T>()[0] = static_cast<T>(static_cast<float>(big)); });
    products.product(x, w, false, nullptr, y, {});
    CHECK(doubles(y) == std::vector<double>{big + 8});
  }
}

TEST_CASE("products of phantom tensors are checked but not computed") {
  PhantomMemory nothing;
  Ledger ledger;
  Allocator allocator(nothing, ledger);
  const auto phantom = [&](Shape shape, DType dtype = DType::bf16) {
    return Tensor(allocator, std::move(shape), dtype, Category::workspace);
  };
  Products products;
  products.product(phantom({4, 3}), phantom({3, 5}), false, nullptr, phantom({4, 5}), {});
  products.add_outer(phantom({4, 3}), phantom({4, 5}), phantom({3, 5}, DType::f32), {});
  const Tensor bias = phantom({4});
  CHECK_THROWS(products.product(phantom({4, 3}), phantom({5, 3}), false, nullptr, phantom({4, 5}), {}));
  CHECK_THROWS(products.product(phantom({4, 3}), phantom({3, 5}), false, &bias, phantom({4, 5}), {}));
  CHECK_THROWS(products.product(phantom({4, 3}), phantom({3, 5}), false, nullptr, phantom({2, 5}), {}));
  CHECK_THROWS(products.product(phantom({4, 3}), phantom({3, 5}), false, nullptr, phantom({4, 5}, DType::f16), {}));
  CHECK_THROWS(products.product(phantom({4, 3}), phantom({3, 5}, DType::f32), false, nullptr, phantom({4, 5}), {}));
  CHECK_THROWS(products.add_outer(phantom({4, 3}), phantom({4, 5}), phantom({3, 5}), {}));
  CHECK_THROWS(products.add_outer(phantom({4, 3}), phantom({2, 5}), phantom({3, 5}, DType::f32), {}));
}

TEST_CASE("the measured peak is plausible on one core and on two") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int cores : {1, 2}) {
      const double peak = product_peak(dtype, cores, allowed_cpus());
      CHECK(peak > 1e6);
      CHECK(peak < 1e14);
    }
}

TEST_CASE("how fast products are", "[!benchmark]") {
  struct Form {
    const char* name;
    std::int64_t m, k, n;
  };
  constexpr Form nano[] = {{"qkv", 2048, 384, 1152},
                           {"projection", 2048, 384, 384},
                           {"up", 2048, 384, 1536},
                           {"down", 2048, 1536, 384},
                           {"head", 2048, 384, 4096}};
  Desk desk;
  HostMemory memory;
  Products products;
  const auto print = [](const char* name, const char* what, DType dtype, double flops, auto&& work) {
    work();
    double best = INFINITY;
    const SystemClock clock;
    for (int i = 0; i < 10; ++i) {
      const double start = clock.seconds();
      work();
      best = std::min(best, clock.seconds() - start);
    }
    fmt::print("{:<11} {:<9} {:<5} {:7.1f} GFLOP/s\n", name, what, name_of(dtype), flops / best * 1e-9);
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    fmt::print("1024³                 {:<5} {:7.1f} GFLOP/s\n", name_of(dtype), product_peak(dtype, 1, {}) * 1e-9);
    for (const auto [name, m, k, n] : nano) {
      const bool tied = std::string(name) == "head";  // the weights are [N,K], like the embedding table
      const Tensor x = desk.random({m, k}, dtype), y = desk.random({m, n}, dtype), dx = desk.empty({m, k}, dtype);
      const Tensor w = desk.random(tied ? Shape{n, k} : Shape{k, n}, dtype);
      const Tensor dw = desk.filled(w.shape(), DType::f32, 0);
      const double flops = 2.0 * static_cast<double>(m * k * n);
      print(name, "y = x·w", dtype, flops, [&] { products.product(x, w, tied, nullptr, y, {}); });
      print(name, "dx = dy·w", dtype, flops, [&] { products.product(y, w, !tied, nullptr, dx, {}); });
      print(name, "dw += x·dy", dtype, flops, [&] { products.add_outer(tied ? y : x, tied ? x : y, dw, {}); });
    }
  }
}
