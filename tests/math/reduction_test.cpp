#include "src/math/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/random.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

constexpr Redop all_redops[] = {Redop::sum, Redop::prod, Redop::min, Redop::max, Redop::avg};

// Returns random bits. Every fourth element is a value at which errors are likely.
std::vector<std::byte> vector_of(DType dtype, std::int64_t count, std::uint32_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size_of(dtype)));
  const Random random{.seed = seed};
  visit(dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = std::uint64_t{random.bits(static_cast<std::uint64_t>(2 * i))} << 32 |
                                 random.bits(static_cast<std::uint64_t>(2 * i + 1));
      T value;
      std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
      if constexpr (!std::is_integral_v<T>) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const float special[] = {0.0f, -0.0f, infinity, -infinity, NAN, 1.0f, -1.0f, 1e-40f};
        if (bits % 4 == 0) value = static_cast<T>(special[bits / 4 % 8]);
      }
      std::memcpy(bytes.data() + i * size_of(dtype), &value, sizeof value);
    }
  });
  return bytes;
}

// Checks bitwise equality. A NaN from a sum or product matches any NaN, because the processor can keep the payload of either
// operand.
bool same(DType dtype, bool any_nan, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return visit(dtype, [&]<class T>(Type<T>) {
    for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
      T x, y;
      std::memcpy(static_cast<void*>(&x), &a[i], sizeof x);
      std::memcpy(static_cast<void*>(&y), &b[i], sizeof y);
      if constexpr (!std::is_integral_v<T>)
        if (any_nan && std::isnan(static_cast<double>(x)) && std::isnan(static_cast<double>(y))) continue;
      if (std::memcmp(&x, &y, sizeof x) != 0) return false;
    }
    return true;
  });
}

}  // namespace

TEST_CASE("the fast reduction gives the reference's bits, for every type, operator and odd length") {
  for (const DType dtype : all_dtypes)
    for (const Redop op : all_redops)
      for (const std::int64_t count : {0, 1, 7, 33, 2047, 2048, 4099})
        for (const std::uint32_t sources : {1u, 2u, 3u, 8u}) {
          std::vector<std::vector<std::byte>> inputs;
          std::vector<const void*> places;
          for (std::uint32_t s = 0; s < sources; ++s) inputs.push_back(vector_of(dtype, count, s + 1));
          for (const auto& input : inputs) places.push_back(input.data());
          auto fast = vector_of(dtype, count, 99), plain = fast;
          reduce(op, dtype, fast.data(), places, count);
          reduce_reference(op, dtype, plain.data(), places, count);
          INFO(name_of(dtype) << " " << redop_names[static_cast<std::size_t>(op)] << ", " << count << " of " << sources);
          REQUIRE(same(dtype, op != Redop::min && op != Redop::max, fast, plain));
          // Reduces into one of the sources, as in-place collectives do.
          reduce(op, dtype, inputs.back().data(), places, count);
          REQUIRE(same(dtype, op != Redop::min && op != Redop::max, inputs.back(), plain));
        }
}

TEST_CASE("min and max do not depend on the order of the inputs, NaN and both zeros included") {
  const float quiet = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {0.0f, -0.0f, INFINITY, -INFINITY, std::bit_cast<float>(0xffc12345u), 1e-45f, -3.0f};
  for (const Redop op : {Redop::min, Redop::max})
    for (const float a : values)
      for (const float b : values)
        for (const float c : values) {
          const auto of = [&](float x, float y, float z) {
            const void* sources[] = {&x, &y, &z};
            float out = 0;
            reduce(op, DType::f32, &out, sources, 1);
            return std::bit_cast<std::uint32_t>(out);
          };
          const std::uint32_t bits = of(a, b, c);
          REQUIRE((bits == of(b, c, a) && bits == of(c, b, a) && bits == of(b, a, c)));
          if (std::isnan(a) || std::isnan(b) || std::isnan(c)) REQUIRE(bits == std::bit_cast<std::uint32_t>(quiet));
        }
  const float zeros[] = {0.0f, -0.0f};
  const void* sources[] = {&zeros[0], &zeros[1]};
  float out = 1;
  reduce(Redop::min, DType::f32, &out, sources, 1);
  CHECK(std::signbit(out));
  reduce(Redop::max, DType::f32, &out, sources, 1);
  CHECK_FALSE(std::signbit(out));
}

TEST_CASE("bf16 sums round once, at the end") {
  const bf16 one(1.0f), small(0x1p-9f);  // 1 + 2^-9 rounds to 1, so rounding after each addition would lose all small values
  const void* sources[] = {&one, &small, &small, &small, &small, &small, &small, &small, &small};
  bf16 out;
  reduce(Redop::sum, DType::bf16, &out, sources, 1);
  CHECK(float(out) == 1.0f + 0x1p-6f);
  divide(DType::bf16, &out, 1, 2);
  CHECK(float(out) == 0.5f + 0x1p-7f);
  std::int32_t odd = -7;
  divide(DType::i32, &odd, 1, 2);
  CHECK(odd == -3);
  CHECK_THROWS(divide(DType::i32, &odd, 1, 0));
  CHECK_THROWS(reduce(Redop::sum, DType::f32, &out, {}, 1));
}

TEST_CASE("an integer average may have more contributions than its type can count") {
  for (const std::int64_t by : {255, 256, 300, 512}) {
    INFO("by " << by);
    std::uint8_t bytes[] = {0, 44, 255};
    divide(DType::u8, bytes, 3, by);
    CHECK(std::vector<int>(bytes, bytes + 3) == std::vector<int>{0, 0, by == 255});
  }
  std::int32_t whole = -7;
  divide(DType::i32, &whole, 1, (std::int64_t{1} << 32) + 2);
  CHECK(whole == 0);
  std::int64_t wide = -(std::int64_t{1} << 62) - 1;
  divide(DType::i64, &wide, 1, 2);
  CHECK(wide == -(std::int64_t{1} << 61));
}

TEST_CASE("how fast vectors are added", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<std::byte> a(1 << 16), b(1 << 16), out(1 << 16);
    const void* sources[] = {a.data(), b.data()};
    BENCHMARK("64 KiB + 64 KiB of " + std::string(name_of(dtype))) {
      reduce(Redop::sum, dtype, out.data(), sources, static_cast<std::int64_t>(out.size()) / size_of(dtype));
      return out[0];
    };
  }
}

TEST_CASE("a reduction into several vectors gives each the same bits, even if some of them are sources") {
  for (const DType dtype : all_dtypes)
    for (const std::size_t sources : {1u, 2u, 3u})
      for (const std::size_t outs : {1u, 2u, 3u}) {
        constexpr std::int64_t count = 5003;
        const auto bytes = static_cast<std::size_t>(count * size_of(dtype));
        std::vector<std::vector<std::byte>> data(3, std::vector<std::byte>(bytes)), apart(3, std::vector<std::byte>(bytes));
        for (std::size_t v = 0; v < 3; ++v)
          for (std::size_t b = 0; b < bytes; ++b) data[v][b] = static_cast<std::byte>((b * 7 + v * 13) % 50);
        std::vector<std::byte> wanted(bytes);
        std::vector<const void*> from;
        for (std::size_t s = 0; s < sources; ++s) from.push_back(data[s].data());
        reduce_reference(Redop::max, dtype, wanted.data(), from, count);
        std::vector<void*> into, onto;
        for (std::size_t o = 0; o < outs; ++o) {
          into.push_back(apart[o].data());
          onto.push_back(data[o].data());
        }
        reduce(Redop::max, dtype, into, from, count);
        reduce(Redop::max, dtype, onto, from, count);  // writes into the sources
        for (std::size_t o = 0; o < outs; ++o) {
          INFO(name_of(dtype) << ", " << sources << " sources, " << outs << " results");
          CHECK(apart[o] == wanted);
          CHECK(data[o] == wanted);
        }
      }
}
