// Sums over tokens, column by column: the gradients of biases, norms and tables. `dy` and `x` have the shape [rows, n] and a
// floating-point type. On the host, f32 sums run from the first row to the last. Threads split the columns, so results do
// not depend on the number of threads. f64 sums use the plain loops of reference/sums.hpp. Column sums are memory-bound; dy
// and x are each read once.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

// db[n] += Σ dy
void add_columns(const Tensor& dy, const Tensor& db, const Queue& queue);

// dgain[n] += Σ dy·(x − mean)·rstd, dshift[n] += Σ dy. Each row of `stats` [rows, 2] holds mean and rstd, in the type of
// `dgain`.
void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain, const Tensor* dshift,
                        const Queue& queue);

// table[ids[row] − first] += dy[row], for ids within the table
void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, const Queue& queue);

}  // namespace chorale
