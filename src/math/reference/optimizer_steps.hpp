// One step of AdamW and of SGD with momentum, one element at a time. src/math/optimizer_steps.hpp documents the formulas.
#pragma once
#include <cmath>

#include "src/math/optimizer_steps.hpp"

namespace chorale::reference {

template <class T, class Gradient>
void adamw(const AdamStep& s, T* w, T* m, T* v, const Gradient* gradient, double scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double g = static_cast<double>(gradient[i]) * scale;
    m[i] = static_cast<T>(s.beta1 * m[i] + (1 - s.beta1) * g);
    v[i] = static_cast<T>(s.beta2 * v[i] + (1 - s.beta2) * g * g);
    const double direction = m[i] * s.correction1 / (std::sqrt(v[i] * s.correction2) + s.epsilon);
    w[i] = static_cast<T>(w[i] - s.rate * (direction + s.decay * w[i]));
  }
}

template <class T, class Gradient>
void sgd(const SgdStep& s, T* w, T* m, const Gradient* gradient, double scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    m[i] = static_cast<T>(s.momentum * m[i] + static_cast<double>(gradient[i]) * scale + s.decay * w[i]);
    w[i] = static_cast<T>(w[i] - s.rate * m[i]);
  }
}

}  // namespace chorale::reference
