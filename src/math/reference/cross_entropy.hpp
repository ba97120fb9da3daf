// Softmax and cross entropy of rows of logits whose target is among them: what the pieces of cross_entropy.hpp come to when one rank has
// the whole vocabulary.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace chorale::reference {

// losses[row] = log Σ exp(logits − max) + max − logits[target]; gradient = softmax − onehot; zeros where the target is −1.
template <class T>
void cross_entropy(const T* logits, const std::int32_t* targets, T* losses, T* gradient, std::int64_t rows,
                   std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* z = logits + row * columns;
    const T largest = *std::max_element(z, z + columns);
    T sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(z[j] - largest);
    const bool counted = targets[row] >= 0;
    losses[row] = counted ? std::log(sum) + largest - z[targets[row]] : T(0);
    for (std::int64_t j = 0; j < columns; ++j)
      gradient[row * columns + j] = counted ? std::exp(z[j] - largest) / sum - (j == targets[row] ? T(1) : T(0)) : T(0);
  }
}

}  // namespace chorale::reference
