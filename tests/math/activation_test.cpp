#include "src/math/activation.hpp"

#include "src/math/reference/activation.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("activations: the references' gradients match finite differences") {
  Desk desk;
  const auto x = doubles(desk.random({24}, DType::f64, 3)), dy = doubles(desk.random({24}, DType::f64));
  std::vector<double> y(24), dx(24), half(12), half_dy(dy.begin(), dy.begin() + 12);
  const auto gelu = [&](const std::vector<double>& at) {
    reference::gelu_forward(at.data(), y.data(), 24);
    return dot(y, dy);
  };
  reference::gelu_backward(dy.data(), x.data(), dx.data(), 24);
  CHECK(distance(dx, numerical_gradient(gelu, x)) <= 1e-6);
  const auto swiglu = [&](const std::vector<double>& at) {
    reference::swiglu_forward(at.data(), 3, half.data(), 4);
    return dot(half, half_dy);
  };
  reference::swiglu_backward(half_dy.data(), x.data(), 3, dx.data(), 4);
  CHECK(distance(dx, numerical_gradient(swiglu, x)) <= 1e-6);
}

TEST_CASE("activations: gelu gives the reference's values, with the same bits on one thread and two") {
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : odd_sizes) {
      INFO(name_of(dtype) << " " << count);
      Desk desk;
      const Tensor x = desk.random({count}, dtype, 5), dy = desk.random({count}, dtype);
      const Tensor y = desk.empty({count}, dtype), again = desk.empty({count}, dtype);
      const auto in = doubles(x), above = doubles(dy);
      std::vector<double> wanted(in.size());
      gelu_forward(x, y, {1});
      gelu_forward(x, again, {2});
      reference::gelu_forward(in.data(), wanted.data(), count);
      CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
      CHECK(same_bits(y, again));
      gelu_backward(dy, x, y, {1});
      gelu_backward(dy, x, dy, {2});  // in place
      reference::gelu_backward(above.data(), in.data(), wanted.data(), count);
      CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
      CHECK(same_bits(y, dy));
    }
}

TEST_CASE("activations: gelu of every bf16 is the f32 result, rounded") {
  Desk desk;
  const std::int64_t count = 1 << 16;
  const Tensor x = desk.empty({count}, DType::bf16), wide = desk.empty({count}, DType::f32);
  const Tensor dy = desk.filled({count}, DType::bf16, 3), wide_dy = desk.filled({count}, DType::f32, 3);
  const Tensor y = desk.empty({count}, DType::bf16), wide_y = desk.empty({count}, DType::f32);
  const auto in = x.values<bf16>(), out = y.values<bf16>();
  for (std::size_t bits = 0; bits < in.size(); ++bits) {
    in[bits] = std::bit_cast<bf16>(static_cast<std::uint16_t>(bits));
    wide.values<float>()[bits] = in[bits];
  }
  const auto differing = [&] {
    std::int64_t different = 0;
    for (std::size_t bits = 0; bits < in.size(); ++bits) {
      const float got = out[bits], wanted = static_cast<float>(bf16(wide_y.values<float>()[bits]));
      different += std::isnan(got) ? !std::isnan(wanted) : got != wanted;
    }
    return different;
  };
  gelu_forward(x, y, {2});
  gelu_forward(wide, wide_y, {1});
  CHECK(differing() == 0);
  gelu_backward(dy, x, y, {2});
  gelu_backward(wide_dy, wide, wide_y, {1});
  CHECK(differing() == 0);
}

TEST_CASE("activations: swiglu gives the reference's values, with the same bits on one thread and two") {
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t block : odd_sizes) {
      INFO(name_of(dtype) << " blocks of " << block);
      Desk desk;
      const Tensor x = desk.random({3, 2, 2, block}, dtype, 5), dy = desk.random({3, 2 * block}, dtype);
      const Tensor y = desk.empty(dy.shape(), dtype), y_again = desk.empty(dy.shape(), dtype);
      const Tensor dx = desk.empty(x.shape(), dtype), dx_again = desk.empty(x.shape(), dtype);
      const auto in = doubles(x), above = doubles(dy);
      std::vector<double> wanted(above.size()), wanted_dx(in.size());
      swiglu_forward(x, block, y, {1});
      swiglu_forward(x, block, y_again, {2});
      reference::swiglu_forward(in.data(), block, wanted.data(), 6);
      CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
      CHECK(same_bits(y, y_again));
      swiglu_backward(dy, x, block, dx, {1});
      swiglu_backward(dy, x, block, dx_again, {2});
      reference::swiglu_backward(above.data(), in.data(), block, wanted_dx.data(), 6);
      CHECK(distance(doubles(dx), wanted_dx) <= tolerance(dtype));
      CHECK(same_bits(dx, dx_again));
    }
}

TEST_CASE("activations: far from 0, results are 0 or linear, and NaN stays NaN") {
  Desk desk;
  const Tensor x = desk.filled({6}, DType::f32, 0), y = desk.empty({6}, DType::f32), one = desk.filled({6}, DType::f32, 1);
  const float numbers[] = {-3e38f, -100, -0.0f, 100, 3e38f, NAN};
  std::copy(std::begin(numbers), std::end(numbers), x.values<float>().begin());
  gelu_forward(x, y, {});
  for (std::size_t i = 0; i < 5; ++i) CHECK(y.values<float>()[i] == (i < 3 ? 0 : numbers[i]));
  CHECK(std::isnan(y.values<float>()[5]));
  gelu_backward(one, x, y, {});
  for (std::size_t i = 0; i < 5; ++i) CHECK(y.values<float>()[i] == (i < 2 ? 0 : i == 2 ? 0.5f : 1));
  CHECK(std::isnan(y.values<float>()[5]));
  const Tensor pairs = x.view({3, 2}), out = y.narrow(0, 3).view({3, 1});
  swiglu_forward(pairs, 1, out, {});
  CHECK(out.values<float>()[0] == 0);
  CHECK(std::isnan(out.values<float>()[2]));
  CHECK_THROWS(swiglu_forward(pairs, 2, out, {}));
  CHECK_THROWS(gelu_forward(x, out, {}));
}

TEST_CASE("how fast activations are", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : {std::pair{2048, 384}, std::pair{4096, 768}}) {
      Desk desk;
      const Tensor x = desk.random({rows, width}, dtype), y = desk.empty({rows, width}, dtype);
      const Tensor half = desk.empty({rows, width / 2}, dtype);
      BENCHMARK(moving("gelu", x, 2 * x.bytes())) { gelu_forward(x, y, {}); };
      BENCHMARK(moving("its gradient", x, 3 * x.bytes())) { gelu_backward(y, x, y, {}); };
      BENCHMARK(moving("swiglu", x, 3 * half.bytes())) { swiglu_forward(x, width / 2, half, {}); };
      BENCHMARK(moving("its gradient", x, 5 * half.bytes())) { swiglu_backward(half, x, width / 2, y, {}); };
    }
}
