// Access to the tile registers of the processor. GCC's tile intrinsics take only literal register numbers, not template
// arguments, so this file uses inline assembly.
#pragma once
#include "src/math/bf16/tiles.hpp"

namespace chorale::bf16_products {

struct Amx {
  [[gnu::always_inline]] static void configure(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  }
  [[gnu::always_inline]] static void release() { asm volatile("tilerelease"); }

  template <int tile>
  [[gnu::always_inline]] static void load(const void* from, std::int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  [[gnu::always_inline]] static void store(void* to, std::int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int c, int a, int b>
  [[gnu::always_inline]] static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

}  // namespace chorale::bf16_products
