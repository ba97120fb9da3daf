#include "src/math/dropout.hpp"

#include "src/math/reference/dropout.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

TEST_CASE("dropout: random bits are the same in bulk and one by one") {
  const Random random{.seed = 0x123456789abcdef0u, .step = 5, .site = 9};
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{3}, (std::uint64_t{1} << 34) - 130})  // the last index overflows the lower half of
                                                                              // the counter
    for (const std::size_t count : {1u, 4u, 255u, 256u, 257u, 700u}) {
      std::vector<std::uint32_t> bits(count);
      random.fill_bits(first, bits);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) wrong += bits[i] != random.bits(first + i);
      INFO(count << " from " << first);
      CHECK(wrong == 0);
    }
}

TEST_CASE("dropout: the fast kernels give the reference's values, with the same bits on one thread and two") {
  for (const double probability : {0.0, 0.3})
    for (const DType dtype : floating_dtypes)
      for (const std::int64_t width : {1, 3, 33, 100, 300}) {
        INFO(name_of(dtype) << " width " << width << " p " << probability);
        Desk desk;
        const std::int64_t rows = 6;
        const Tensor x = desk.random({rows, width}, dtype), bias = desk.random({width}, dtype);
        const Tensor around = desk.random({rows, width}, dtype), y = desk.empty({rows, width}, dtype);
        const Dropout drop{probability,
                           {.seed = 1, .step = 2, .site = 3},
                           {.first_sample = 4, .sequence = 9, .first_token = 3, .tokens = 3}};
        const auto in = doubles(x), b = doubles(bias), rest = doubles(around);
        std::vector<double> wanted(in.size());
        dropout(x, drop, y, {1});
        reference::dropout<double>(in.data(), nullptr, drop, nullptr, wanted.data(), width, 0, rows);
        const auto values = doubles(y);
        CHECK(distance(values, wanted) <= tolerance(dtype));
        // The masks must be exactly the same.
        for (std::size_t i = 0; i < values.size(); ++i) REQUIRE((values[i] == 0) == (wanted[i] == 0));
        add_residual(x, &bias, drop, around, y, {1});
        reference::dropout(in.data(), b.data(), drop, rest.data(), wanted.data(), width, 0, rows);
        CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
        const Tensor same = copy_of(desk, around);
        add_residual(x, &bias, drop, same, same, {2});
        CHECK(same_bits(y, same));
        add_residual(x, nullptr, drop, around, y, {2});
        reference::dropout<double>(in.data(), nullptr, drop, rest.data(), wanted.data(), width, 0, rows);
        CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
      }
}

TEST_CASE("dropout: the mask of a token does not depend on how the batch is split") {
  Desk desk;
  const std::int64_t samples = 3, sequence = 8, width = 37;
  const Tensor ones = desk.filled({samples * sequence, width}, DType::f32, 1), whole = desk.empty(ones.shape(), DType::f32);
  dropout(ones, {0.5, {.seed = 8}, {.sequence = sequence, .tokens = sequence}}, whole, {});
  for (std::int64_t sample = 0; sample < samples; ++sample)
    for (std::int64_t token = 0; token < sequence; token += 2) {
      const Tensor part = desk.empty({2, width}, DType::f32);
      dropout(ones.narrow(0, 2), {0.5, {.seed = 8}, {sample, sequence, token, 2}}, part, {});
      CHECK(same_bits(part, whole.narrow(sample * sequence + token, 2)));
    }
  double kept = 0;
  for (const double v : doubles(whole)) {
    REQUIRE((v == 0 || v == 2));
    kept += v / 2;
  }
  CHECK(kept / static_cast<double>(whole.count()) == Approx(0.5).margin(0.06));  // the margin is four standard deviations
  const Tensor nans = desk.filled(ones.shape(), DType::f32, NAN);
  dropout(nans, {0.5, {.seed = 8}, {}}, whole, {});
  for (const double v : doubles(whole)) REQUIRE(std::isnan(v));
  CHECK_THROWS(dropout(ones, {1.0, {}, {}}, whole, {}));
  CHECK_THROWS(add_residual(ones, &nans, {}, ones, whole, {}));
}

TEST_CASE("how fast dropout is", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : {std::pair{2048, 384}, std::pair{4096, 768}})
      for (const double p : {0.0, 0.1}) {
        Desk desk;
        const Tensor x = desk.random({rows, width}, dtype), bias = desk.random({width}, dtype);
        const Tensor y = desk.random({rows, width}, dtype);
        BENCHMARK(moving(p > 0 ? "add residual, dropout" : "add residual", x, 3 * x.bytes())) {
          add_residual(x, &bias, {p, {}, {}}, y, y, {});
        };
      }
}
