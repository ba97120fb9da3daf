#include "src/math/embedding.hpp"

#include "src/math/reference/embedding.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

TEST_CASE("embedding: rows of this rank are gathered, and rows of other ranks give zeros") {
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : odd_sizes) {
      INFO(name_of(dtype) << " " << width);
      Desk desk;
      const Tensor table = desk.random({4, width}, dtype), ids = desk.empty({6}, DType::i32);
      const std::int32_t numbers[] = {10, 13, 9, 14, -1, 12};  // the table has rows 10 to 13
      std::copy(std::begin(numbers), std::end(numbers), ids.values<std::int32_t>().begin());
      const Tensor y = desk.random({6, width}, dtype), again = desk.random({6, width}, dtype);
      gather_rows(ids, table, 10, y, {1});
      gather_rows(ids, table, 10, again, {2});
      std::vector<double> wanted(static_cast<std::size_t>(6 * width));
      reference::gather_rows(numbers, 6, doubles(table).data(), 10, 4, wanted.data(), width);
      CHECK(doubles(y) == wanted);
      CHECK(same_bits(y, again));
      CHECK(doubles(y.narrow(1, 1)) == doubles(table.narrow(3, 1)));
      CHECK_THROWS(gather_rows(ids, table, 10, y.narrow(0, 5), {}));
    }
}

TEST_CASE("embedding: positions are added to this rank's tokens") {
  for (const DType dtype : floating_dtypes) {
    Desk desk;
    const Tensor table = desk.random({8, 33}, dtype), y = desk.random({6, 33}, dtype);
    const Tensor twice = copy_of(desk, y);
    const auto before = doubles(y), places = doubles(table);
    const Tokens tokens{.first_sample = 5, .sequence = 8, .first_token = 5, .tokens = 3};
    add_positions(table, tokens, y, {1});
    add_positions(table, tokens, twice, {2});
    std::vector<double> wanted;
    for (std::size_t i = 0; i < before.size(); ++i) wanted.push_back(before[i] + places[(5 + i / 33 % 3) * 33 + i % 33]);
    CHECK(distance(doubles(y), wanted) <= tolerance(dtype));
    CHECK(same_bits(y, twice));
    CHECK_THROWS(add_positions(table, {.sequence = 8, .first_token = 6, .tokens = 3}, y, {}));
  }
}

TEST_CASE("embedding: rotary positions rotate pairs of queries and keys, and rotating back restores them") {
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {2, 6, 34, 100}) {
      INFO(name_of(dtype) << " " << width);
      Desk desk;
      const Rotary rotary{.units = 2, .heads = 3, .rotated = 2, .width = width};
      const Tokens tokens{.sequence = 200, .first_token = 61, .tokens = 4};
      const Tensor x = desk.random({8, 6 * width}, dtype), twice = copy_of(desk, x), start = copy_of(desk, x);
      auto wanted = doubles(x);
      reference::rotate(wanted.data(), 8, rotary, tokens, false);
      rotate(x, rotary, tokens, false, {1});
      rotate(twice, rotary, tokens, false, {2});
      CHECK(distance(doubles(x), wanted) <= tolerance(dtype));
      CHECK(same_bits(x, twice));
      CHECK_FALSE(same_bits(x, start));
      // The third head holds values, which are not rotated.
      for (std::int64_t i = 0; i < width; ++i) CHECK(doubles(x)[2 * width + i] == doubles(start)[2 * width + i]);
      rotate(x, rotary, tokens, true, {1});
      CHECK(distance(doubles(x), doubles(start)) <= 2 * tolerance(dtype));
      // The rotation of a single token is the same as the rotation of this token in a longer tensor.
      const Tensor last = copy_of(desk, start.narrow(7, 1));
      rotate(last, rotary, {.first_sample = 1, .sequence = 200, .first_token = 64, .tokens = 1}, false, {1});
      CHECK(same_bits(last, twice.narrow(7, 1)));
    }
}

TEST_CASE("how fast embeddings are", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Desk desk;
    const Tensor y = desk.random({2048, 384}, dtype), table = desk.random({4096, 384}, dtype);
    const Tensor qkv = desk.random({2048, 3 * 384}, dtype), ids = desk.empty({2048}, DType::i32);
    for (std::int32_t i = 0; i < 2048; ++i) ids.values<std::int32_t>()[static_cast<std::size_t>(i)] = i * 1571 % 4096;
    BENCHMARK(moving("gather", y, 2 * y.bytes())) { gather_rows(ids, table, 0, y, {}); };
    BENCHMARK(moving("positions", y, 2 * y.bytes())) { add_positions(table, {.sequence = 256, .tokens = 256}, y, {}); };
    BENCHMARK(moving("rotate", qkv, 4 * y.bytes())) {
      rotate(qkv, {.units = 6, .heads = 3, .rotated = 2, .width = 64}, {.sequence = 256, .tokens = 256}, false, {});
    };
  }
}
