// Cross entropy of one row of logits over the complete vocabulary:
//
//   ℓ = log Σ exp(x − max) + max − x[target]        dℓ/dx = softmax(x) − onehot
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace chorale::reference {

template <class T>
T cross_entropy(const T* logits, std::int64_t columns, std::int64_t target) {
  const T maximum = *std::max_element(logits, logits + columns);
  T sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(logits[j] - maximum);
  return std::log(sum) + maximum - logits[target];
}

// Computes the gradient of one rank's part of a row, in place. A target outside this part belongs to another rank.
template <class T>
void cross_entropy_gradient(T* logits, T maximum, T sum, std::int64_t columns, std::int64_t target, T scale) {
  for (std::int64_t j = 0; j < columns; ++j)
    logits[j] = (std::exp(logits[j] - maximum) / sum - (j == target ? 1 : 0)) * scale;
}

}  // namespace chorale::reference
