// The engine for processors with AMX (Intel since Sapphire Rapids). The matrix unit of these processors has eight tile
// registers of 16 rows of 64 bytes. One instruction multiplies two tiles (a product of 16 × 16 × 16 words) and adds the
// product to a third tile. This engine computes its products as follows:
//
//                       b, tile 5
//                  ┌────┬────┬────┬────┐      four tiles of c, side by side, stay in registers while k runs;
//   a, tile 4   →  │ 0  │ 1  │ 2  │ 3  │      each step of k loads one tile of a and four of b
//                  └────┴────┴────┴────┘
//
// If the depth is not a multiple of 16 words, the last step has 8 words. This step uses smaller tiles: tile 6 for a and tile
// 7 for b.
//
// The template parameter Machine provides the tile registers: the processor's registers (amx.hpp), or arrays that tests can
// inspect. One instruction sums the products of the words' lower halves in one chain and the products of the upper halves in
// a second chain. Both chains begin with 0, and their sum is added to c.
#pragma once

#include "src/math/bf16/products.hpp"
#include "src/math/bf16/vectors.hpp"

namespace chorale::bf16_products {

// The operand of ldtilecfg. The processor defines the order of the fields.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 32, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 8};
};
static_assert(sizeof(TileShapes) == 64);

template <class Machine, class Rounding>
struct Tiles : Rounding {
  // oneDNN configures the tile registers with other shapes before it uses them, so each of our calls configures the
  // registers again.
  struct Session {
    Session() { Machine::configure(TileShapes{}); }
    ~Session() { Machine::release(); }
    Session(const Session&) = delete;
  };

  template <bool adds>
  [[gnu::always_inline]] static void product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Words a, Words b,
                                             Matrix<float> c) {
    for (std::int64_t i = 0; i < rows; i += 16) {
      const Words left{a.at + i * a.row, a.row};
      std::int64_t j = 0;
      const auto strip = [&]<int count>(Count<count>) __attribute__((always_inline)) {
        multiply<count, adds>(depth, left, {b.at + j, b.row}, {c.at + i * c.row + j, c.row});
        j += 16 * count;
      };
      while (j + 64 <= columns) strip(Count<4>{});
      if (j + 32 <= columns) strip(Count<2>{});
      if (j < columns) strip(Count<1>{});
    }
  }

 private:
  template <int count>
  struct Count {};

  template <int count, bool adds>
  [[gnu::always_inline]] static void multiply(std::int64_t depth, Words a, Words b, Matrix<float> c) {
    each<count>([&]<int t>() __attribute__((always_inline)) {
      if constexpr (adds)
        Machine::template load<t>(c.at + t * 16, c.row * 4);
      else
        Machine::template zero<t>();
    });
    std::int64_t k = 0;
    for (; k + 16 <= depth; k += 16) {
      Machine::template load<4>(a.at + k, a.row * 4);
      each<count>([&]<int t>() __attribute__((always_inline)) {
        Machine::template load<5>(b.at + k * b.row + t * 16, b.row * 4);
        Machine::template multiply<t, 4, 5>();
      });
    }
    if (k < depth) {
      Machine::template load<6>(a.at + k, a.row * 4);
      each<count>([&]<int t>() __attribute__((always_inline)) {
        Machine::template load<7>(b.at + k * b.row + t * 16, b.row * 4);
        Machine::template multiply<t, 6, 7>();
      });
    }
    each<count>([&]<int t>() __attribute__((always_inline)) { Machine::template store<t>(c.at + t * 16, c.row * 4); });
  }

  // Calls f for each t in [0, `count`). The value t is a template argument, because an instruction contains its register
  // numbers.
  template <int count, class F>
  [[gnu::always_inline]] static void each(F&& f) {
    f.template operator()<0>();
    if constexpr (count > 1) f.template operator()<1>();
    if constexpr (count > 2) {
      f.template operator()<2>();
      f.template operator()<3>();
    }
  }
};

}  // namespace chorale::bf16_products
