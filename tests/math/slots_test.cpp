#include "src/math/slots.hpp"

#include "src/math/reference/slots.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

// Six tokens with three choices each. Two choices are dropped, so there are 16 rows. The order of the rows is arbitrary.
const std::vector<std::int32_t> some_places = {3, 0, 15, 7, 8, -1, 1, 2, 14, 13, 4, 9, -1, 5, 6, 10, 12, 11};

Tensor places_of(Desk& desk) {
  const Tensor places = desk.empty({6, 3}, DType::i32);
  std::copy(some_places.begin(), some_places.end(), places.values<std::int32_t>().begin());
  return places;
}

DType statistics(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

TEST_CASE("slots: the kernels give the reference's values, with the same bits on one thread and several") {
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {1, 3, 17, 33, 300}) {
      INFO(name_of(dtype) << " " << width);
      Desk desk;
      const reference::SlotSizes sizes{6, 3, width};
      const Tensor places = places_of(desk), weights = desk.random({6, 3}, statistics(dtype));
      const Tensor x = desk.random({6, width}, dtype), dy = desk.random({6, width}, dtype);
      const auto in = doubles(x), above = doubles(dy), weight = doubles(weights);
      const std::int32_t* place = some_places.data();
      std::vector<double> rows_wanted(static_cast<std::size_t>(16 * width)), slots_wanted(3 * in.size()), y_wanted(in);
      std::vector<double> dweights_wanted(weight.size());
      for (const int threads : {1, 2, 5}) {
        const Queue queue{threads};
        const Tensor rows = desk.filled({16, width}, dtype, NAN), slots = desk.filled({6, 3 * width}, dtype, NAN);
        take_rows(x, nullptr, places, rows, queue);
        reference::take_rows<double>(sizes, in.data(), nullptr, place, rows_wanted.data());
        CHECK(doubles(rows) == rows_wanted);
        take_rows(x, &weights, places, rows, queue);
        reference::take_rows(sizes, in.data(), weight.data(), place, rows_wanted.data());
        CHECK(distance(doubles(rows), rows_wanted) <= tolerance(dtype));

        rows_wanted = doubles(rows);  // the next check then measures only the next rounding to 16 bits
        put_slots(rows, places, slots, queue);
        reference::put_slots(sizes, rows_wanted.data(), place, slots_wanted.data());
        CHECK(doubles(slots) == slots_wanted);

        const Tensor y = desk.empty({6, width}, dtype), around = copy_of(desk, x), plain = desk.empty({6, width}, dtype);
        add_slots(slots, &weights, &x, y, queue);
        reference::add_slots(sizes, slots_wanted.data(), weight.data(), in.data(), y_wanted.data());
        CHECK(distance(doubles(y), y_wanted) <= tolerance(dtype));
        add_slots(slots, &weights, &around, around, queue);
        CHECK(same_bits(y, around));
        add_slots(slots, nullptr, nullptr, plain, queue);
        reference::add_slots<double>(sizes, slots_wanted.data(), nullptr, nullptr, y_wanted.data());
        CHECK(distance(doubles(plain), y_wanted) <= tolerance(dtype));

        const Tensor dweights = desk.empty({6, 3}, statistics(dtype));
        weight_gradients(dy, slots, dweights, queue);
        reference::weight_gradients(sizes, above.data(), slots_wanted.data(), dweights_wanted.data());
        CHECK(distance(doubles(dweights), dweights_wanted) <= (dtype == DType::f64 ? 1e-13 : 1e-5));

        if (threads == 1) continue;
        const Tensor rows1 = desk.empty(rows.shape(), dtype), slots1 = desk.empty(slots.shape(), dtype);
        const Tensor y1 = desk.empty(y.shape(), dtype), dweights1 = desk.empty({6, 3}, statistics(dtype));
        take_rows(x, &weights, places, rows1, {1});
        put_slots(rows1, places, slots1, {1});
        add_slots(slots1, &weights, &x, y1, {1});
        weight_gradients(dy, slots1, dweights1, {1});
        CHECK((same_bits(rows, rows1) && same_bits(slots, slots1) && same_bits(y, y1) && same_bits(dweights, dweights1)));
      }
    }
}

TEST_CASE("slots: the bits of a token do not depend on the other tokens") {
  for (const DType dtype : floating_dtypes) {
    INFO(name_of(dtype));
    Desk desk;
    const Tensor slots = desk.random({5, 3 * 37}, dtype), weights = desk.random({5, 3}, statistics(dtype));
    const Tensor dy = desk.random({5, 37}, dtype), y = desk.empty({5, 37}, dtype);
    const Tensor dweights = desk.empty({5, 3}, statistics(dtype)), alone = desk.empty({1, 37}, dtype);
    const Tensor dweights_alone = desk.empty({1, 3}, statistics(dtype));
    add_slots(slots, &weights, nullptr, y, {});
    weight_gradients(dy, slots, dweights, {});
    for (std::int64_t t = 0; t < 5; ++t) {
      const Tensor weight = weights.narrow(t, 1);
      add_slots(slots.narrow(t, 1), &weight, nullptr, alone, {});
      weight_gradients(dy.narrow(t, 1), slots.narrow(t, 1), dweights_alone, {});
      CHECK(same_bits(alone, y.narrow(t, 1)));
      CHECK(same_bits(dweights_alone, dweights.narrow(t, 1)));
    }
  }
}

TEST_CASE("slots: 16-bit sums are rounded once, in the order of the slots") {
  Desk desk;
  const Tensor slots = desk.filled({1, 4}, DType::bf16, 1), y = desk.empty({1, 1}, DType::bf16);
  const Tensor weights = desk.filled({1, 4}, DType::f32, 0x1p-9);
  put(weights, 0, 1);
  add_slots(slots, &weights, nullptr, y, {});  // the exact sum is 1 + 3·2^-9; rounding after each slot would give 1
  CHECK(doubles(y)[0] == 1 + 0x1p-7);
  const Tensor wide = desk.filled({1, 3}, DType::f32, 1), sum = desk.empty({1, 1}, DType::f32);
  put(wide, 0, 0x1p24);
  put(wide, 2, -0x1p24);
  add_slots(wide, nullptr, nullptr, sum, {});  // 2^24 + 1 rounds to 2^24
  CHECK(doubles(sum)[0] == 0);
}

TEST_CASE("slots: partial sums are put as they are, and dropped slots are zeros") {
  Desk desk;
  const Tensor rows = desk.empty({16, 5}, DType::i64), slots = desk.filled({6, 15}, DType::i64, -1);
  for (std::int64_t i = 0; i < rows.count(); ++i)
    rows.values<std::int64_t>()[static_cast<std::size_t>(i)] = (std::int64_t{1} << 62) + i;
  put_slots(rows, places_of(desk), slots, {3});
  for (std::size_t i = 0; i < some_places.size(); ++i)
    for (std::size_t column = 0; column < 5; ++column) {
      const std::int64_t wanted =
          some_places[i] < 0 ? 0 : (std::int64_t{1} << 62) + some_places[i] * 5 + static_cast<std::int64_t>(column);
      CHECK(slots.values<std::int64_t>()[i * 5 + column] == wanted);
    }
}

// y is linear in x and in the weights, so ⟨dy, y⟩ = ⟨dx, x⟩ = ⟨dweights, weights⟩.
TEST_CASE("slots: the backward pass is the transpose of the forward pass") {
  Desk desk;
  const DType f64 = DType::f64;
  const Tensor places = places_of(desk), x = desk.random({6, 7}, f64), weights = desk.random({6, 3}, f64);
  const Tensor dy = desk.random({6, 7}, f64), rows = desk.empty({16, 7}, f64), slots = desk.empty({6, 21}, f64);
  const Tensor y = desk.empty({6, 7}, f64), dx = desk.empty({6, 7}, f64), dweights = desk.empty({6, 3}, f64);
  const auto inner = [](const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (std::size_t i = 0; i < doubles(a).size(); ++i) sum += doubles(a)[i] * doubles(b)[i];
    return sum;
  };
  take_rows(x, nullptr, places, rows, {});
  put_slots(rows, places, slots, {});
  add_slots(slots, &weights, nullptr, y, {});
  weight_gradients(dy, slots, dweights, {});
  take_rows(dy, &weights, places, rows, {});
  put_slots(rows, places, slots, {});
  add_slots(slots, nullptr, nullptr, dx, {});
  CHECK(inner(dy, y) == Approx(inner(dx, x)).epsilon(1e-12));
  CHECK(inner(dy, y) == Approx(inner(dweights, weights)).epsilon(1e-12));
}

TEST_CASE("slots: wrong shapes, types and places are refused") {
  Desk desk;
  const Tensor places = places_of(desk), x = desk.random({6, 4}, DType::f32), rows = desk.random({16, 4}, DType::f32);
  const Tensor slots = desk.random({6, 12}, DType::f32), weights = desk.random({6, 3}, DType::f32);
  const Tensor half = desk.random({6, 3}, DType::f16), few = desk.random({15, 4}, DType::f32);
  CHECK_NOTHROW(take_rows(x, &weights, places, rows, {}));
  CHECK_NOTHROW(add_slots(slots, &weights, nullptr, x, {}));
  CHECK_THROWS(take_rows(x, nullptr, places, few, {}));
  CHECK_THROWS(take_rows(x, &half, places, rows, {}));
  CHECK_THROWS(put_slots(few, places, slots, {}));
  CHECK_THROWS(put_slots(rows, places, x, {}));
  CHECK_THROWS(add_slots(slots, &half, nullptr, x, {}));
  CHECK_THROWS(add_slots(slots, &weights, &rows, x, {}));
  CHECK_THROWS(weight_gradients(x, slots, half, {}));
}

TEST_CASE("how fast slots are", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Desk desk;
    const std::int64_t tokens = 2048, k = 4, width = 512;
    const Tensor x = desk.random({tokens, width}, dtype), rows = desk.random({tokens * k, width}, dtype);
    const Tensor slots = desk.random({tokens, k * width}, dtype), weights = desk.random({tokens, k}, DType::f32);
    const Tensor places = desk.empty({tokens, k}, DType::i32);
    for (std::int32_t i = 0; i < tokens * k; ++i)
      places.values<std::int32_t>()[static_cast<std::size_t>(i)] = i * 1571 % static_cast<std::int32_t>(tokens * k);
    BENCHMARK(moving("take rows", rows, x.bytes() + rows.bytes())) { take_rows(x, nullptr, places, rows, {}); };
    BENCHMARK(moving("take rows by weight", rows, x.bytes() + rows.bytes())) { take_rows(x, &weights, places, rows, {}); };
    BENCHMARK(moving("put slots", rows, 2 * rows.bytes())) { put_slots(rows, places, slots, {}); };
    BENCHMARK(moving("add slots", rows, x.bytes() + rows.bytes())) { add_slots(slots, &weights, nullptr, x, {}); };
    BENCHMARK(moving("weight gradients", rows, x.bytes() + rows.bytes())) { weight_gradients(x, slots, weights, {}); };
  }
}
