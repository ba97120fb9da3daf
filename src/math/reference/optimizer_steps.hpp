// The updates of optimizers, one element at a time; see optimizer_steps.hpp for the formulas.
#pragma once
#include <cmath>
#include <cstdint>

#include "src/math/optimizer_steps.hpp"

namespace chorale::reference {

template <class T>
void adamw(const AdamStep& s, T* weights, T* moment1, T* moment2, const T* gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    moment1[i] = static_cast<T>(s.beta1 * moment1[i] + (1 - s.beta1) * gradient[i]);
    moment2[i] = static_cast<T>(s.beta2 * moment2[i] + (1 - s.beta2) * gradient[i] * gradient[i]);
    const double step = moment1[i] * s.correction1 / (std::sqrt(moment2[i] * s.correction2) + s.epsilon);
    weights[i] = static_cast<T>(weights[i] - s.rate * (step + s.decay * weights[i]));
  }
}

template <class T>
void sgd(const SgdStep& s, T* weights, T* moment, const T* gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    moment[i] = static_cast<T>(s.momentum * moment[i] + gradient[i] + s.decay * weights[i]);
    weights[i] = static_cast<T>(weights[i] - s.rate * moment[i]);
  }
}

}  // namespace chorale::reference
