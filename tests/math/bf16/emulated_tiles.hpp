// Emulates the matrix unit of an AMX processor in plain C++, so that code for AMX (src/math/bf16/tiles.hpp) can be tested on
// every machine. Like the processor, the emulation refuses shapes that do not fit, and instructions that run before the
// tiles have shapes.
#pragma once
#include <cmath>
#include <cstring>

#include <chorale/element.hpp>
#include "src/base/error.hpp"
#include "src/math/bf16/tiles.hpp"

namespace chorale {

using bf16_products::Matrix;
using bf16_products::Word;
using bf16_products::Words;

inline float low_half(Word word) { return std::bit_cast<float>(word << 16); }
inline float high_half(Word word) { return std::bit_cast<float>(word & 0xffff0000u); }
inline Word word_of(float low, float high) { return bf16(low).bits | static_cast<Word>(bf16(high).bits) << 16; }

struct PlainRounding {
  static void round_rows(Matrix<const float> from, std::int64_t rows, std::int64_t columns, Matrix<Word> to) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < columns; j += 2)
        to.at[r * to.row + j / 2] = word_of(from.at[r * from.row + j], from.at[r * from.row + j + 1]);
  }
  static void round_pairs(Matrix<const float> from, std::int64_t rows, std::int64_t columns, Matrix<Word> to) {
    for (std::int64_t r = 0; r < rows; r += 2)
      for (std::int64_t j = 0; j < columns; ++j)
        to.at[r / 2 * to.row + j] = word_of(from.at[r * from.row + j], from.at[(r + 1) * from.row + j]);
  }
};

struct EmulatedMachine {
  struct State {
    bool configured = false;
    bf16_products::TileShapes shapes;
    Word tiles[8][16][16];
  };
  static State& state() {
    thread_local State all;
    return all;
  }
  static int rows(int tile) { return shapes().rows[tile]; }
  static int words(int tile) { return shapes().row_bytes[tile] / 4; }
  static const bf16_products::TileShapes& shapes() {
    require(state().configured, "tiles are used before they have shapes");
    return state().shapes;
  }

  static void configure(const bf16_products::TileShapes& shapes) { state() = {true, shapes, {}}; }
  static void release() { state().configured = false; }
  template <int tile>
  static void load(const void* from, std::int64_t row_bytes) {
    for (int i = 0; i < rows(tile); ++i)
      std::memcpy(state().tiles[tile][i], static_cast<const std::byte*>(from) + i * row_bytes,
                  static_cast<std::size_t>(4 * words(tile)));
  }
  template <int tile>
  static void store(void* to, std::int64_t row_bytes) {
    for (int i = 0; i < rows(tile); ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * row_bytes, state().tiles[tile][i],
                  static_cast<std::size_t>(4 * words(tile)));
  }
  template <int tile>
  static void zero() {
    std::memset(state().tiles[tile], 0, sizeof state().tiles[tile]);
  }
  template <int c, int a, int b>
  static void multiply() {
    require(rows(c) == rows(a) && words(c) == words(b) && words(a) == rows(b), "tiles {}, {} and {} do not fit", c, a, b);
    auto& tiles = state().tiles;
    for (int i = 0; i < rows(c); ++i)
      for (int j = 0; j < words(c); ++j) {
        float even = 0, odd = 0;
        for (int k = 0; k < words(a); ++k) {
          const Word left = tiles[a][i][k], right = tiles[b][k][j];
          even = std::fma(low_half(left), low_half(right), even);
          odd = std::fma(high_half(left), high_half(right), odd);
        }
        tiles[c][i][j] = std::bit_cast<Word>(std::bit_cast<float>(tiles[c][i][j]) + (even + odd));
      }
  }
};
using EmulatedTiles = bf16_products::Tiles<EmulatedMachine, PlainRounding>;

}  // namespace chorale
