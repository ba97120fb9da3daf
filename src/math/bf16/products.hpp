// The inner products of attention in bf16: c = a·b or c += a·b, where c is in f32. The operands a and b are stored as words
// of 32 bits. A word holds two bf16 values that are neighbors along the summed dimension. The first value is in the lower
// half:
//
//   a [rows, depth]       word (i, k):  a[i][2k], a[i][2k + 1]       two elements of a row
//   b [depth, columns]    word (k, j):  b[2k][j], b[2k + 1][j]       two rows, interleaved
//
// The numbers of rows and columns are multiples of 16, and the depth is a multiple of 8 words. Rows can have padding in
// memory.
//
// An engine is a struct of static functions for one kind of processor (vectors.hpp, tiles.hpp). In addition to product(), an
// engine has functions that round f32 matrices [rows, columns] to nearest even and store the results as such words:
//
//   product<adds>(rows, columns, depth, a, b, c)
//   round_rows(from, rows, columns, to)     to the words of a left operand
//   round_pairs(from, rows, columns, to)    to the words of a right operand
//   Session                                 an object that must exist while products run
//
// Engines treat denormals as zero. The order in which the products of an element are summed depends on the engine.
#pragma once
#include <cstdint>

namespace chorale::bf16_products {

using Word = std::uint32_t;

// A matrix: its first element, and the distance between rows in elements.
template <class T>
struct Matrix {
  T* at;
  std::int64_t row;
};
using Words = Matrix<const Word>;

}  // namespace chorale::bf16_products
