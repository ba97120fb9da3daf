#include "src/math/vector_math.hpp"

#include <cmath>
#include <vector>

#include "tests/catch.hpp"

using namespace chorale;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
using Single = float (*)(float);
using Precise = double (*)(double);

struct Function {
  const char* name;
  Single fast;
  Precise precise;
  float from, to;
  double ulps;  // as in the header's table
  void (*loop)(const float*, float*, std::size_t);
};

template <Single f>
float one(float x) {
  return f(x);
}
template <Single f>
void loop(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = f(x[i]);
}

const Function functions[] = {
    {"exp", one<math::exp>, [](double x) { return std::exp(x); }, -infinity, infinity, 1.04, loop<math::exp>},
    {"exp2", one<math::exp2>, [](double x) { return std::exp2(x); }, -126.0f, 127.0f, 2.02, loop<math::exp2>},
    {"tanh", one<math::tanh>, [](double x) { return std::tanh(x); }, -infinity, infinity, 2.58, loop<math::tanh>},
    {"sigmoid", one<math::sigmoid>, [](double x) { return 1 / (1 + std::exp(-x)); }, -87.0f, infinity, 2.44,
     loop<math::sigmoid>},
    {"log", one<math::log>, [](double x) { return std::log(x); }, 0.0f, infinity, 0.79, loop<math::log>},
};

// Returns the error in units in the last place of the exact value. All subnormals have the same unit.
double ulps_off(float value, double exact) {
  if (static_cast<float>(exact) == value) return 0;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// Returns floats of every exponent and both signs within the range. The bit patterns increase in steps of a prime number.
std::vector<float> floats(float from, float to) {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 65521) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x >= from && x <= to) all.push_back(x);
  }
  for (float x = -110; x < 110; x += 0.0137f)  // the range in which most results differ from 0 and 1
    if (x >= from && x <= to) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("vector functions stay within the header's error bounds, with the same bits in loops and alone") {
  for (const Function& f : functions) {
    const std::vector<float> x = floats(f.from, f.to);
    std::vector<float> y(x.size());
    f.loop(x.data(), y.data(), x.size());
    double worst = 0;
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double off = ulps_off(y[i], f.precise(x[i]));
      worst = off <= worst ? worst : off;  // NaN counts as the worst
      different += std::bit_cast<std::uint32_t>(y[i]) != std::bit_cast<std::uint32_t>(f.fast(x[i]));
    }
    INFO(f.name << " of " << x.size() << " numbers");
    CHECK(worst <= f.ulps);
    CHECK(worst > 0.4);  // a smaller error would show that nothing was compared
    CHECK(different == 0);
  }
}

TEST_CASE("vector functions have the right values at infinity, at zero, at NaN and where they overflow") {
  for (const Function& f : functions) {
    INFO(f.name);
    CHECK(std::isnan(f.fast(NAN)));
    CHECK(std::isnan(f.fast(-NAN)));
  }
  CHECK(math::exp(-infinity) == 0);
  CHECK(math::exp(-104.0f) == 0);
  CHECK(math::exp(-103.9f) == 0x1p-149f);
  CHECK(math::exp(0.0f) == 1);
  CHECK(math::exp(88.72f) < infinity);
  CHECK(math::exp(88.73f) == infinity);
  CHECK(math::exp(infinity) == infinity);
  CHECK(math::exp2(-infinity) == 0x1p-126f);
  CHECK(math::exp2(-3.0f) == 0.125f);
  CHECK(math::exp2(127.0f) == 0x1p127f);
  CHECK(math::tanh(-infinity) == -1);
  CHECK(math::tanh(infinity) == 1);
  CHECK(std::signbit(math::tanh(-0.0f)));
  CHECK(math::sigmoid(-infinity) == 0);
  CHECK(math::sigmoid(infinity) == 1);
  CHECK(math::sigmoid(0.0f) == 0.5f);
  CHECK(math::log(0.0f) == -infinity);
  CHECK(math::log(-0.0f) == -infinity);
  CHECK(math::log(infinity) == infinity);
  CHECK(math::log(1.0f) == 0);
  CHECK(std::isnan(math::log(-1.0f)));
  CHECK(std::isnan(math::log(-infinity)));
}

TEST_CASE("how fast vector functions are", "[!benchmark]") {
  std::vector<float> x(8192), y(8192);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) * 0.1f + 0.01f;
  for (const Function& f : functions) BENCHMARK(std::string(f.name) + " of 8192 numbers") {
      f.loop(x.data(), y.data(), x.size());
      return y[0];
    };
}
