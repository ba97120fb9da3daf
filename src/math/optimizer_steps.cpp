#include "src/math/optimizer_steps.hpp"

#include <algorithm>
#include <cmath>

#include "src/math/kernel.hpp"

namespace chorale {
namespace {

constexpr std::int64_t piece = 1024;  // gradients widened at once: stays in the first cache

// The numbers of a step in the type that is computed with.
template <class T>
struct Adam {
  T rate, beta1, beta2, epsilon, decay, correction1, correction2;
  explicit Adam(const AdamStep& s)
      : rate(static_cast<T>(s.rate)),
        beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        epsilon(static_cast<T>(s.epsilon)),
        decay(static_cast<T>(s.decay)),
        correction1(static_cast<T>(s.correction1)),
        correction2(static_cast<T>(s.correction2)) {}

  void operator()(T* __restrict weights, T* __restrict moment1, T* __restrict moment2, const T* __restrict gradient,
                  std::int64_t count) const {
    const T fresh1 = 1 - beta1, fresh2 = 1 - beta2;
    for (std::int64_t i = 0; i < count; ++i) {
      const T g = gradient[i];
      const T m = beta1 * moment1[i] + fresh1 * g, v = beta2 * moment2[i] + fresh2 * g * g;
      moment1[i] = m;
      moment2[i] = v;
      weights[i] -= rate * (m * correction1 / (std::sqrt(v * correction2) + epsilon) + decay * weights[i]);
    }
  }
};

// g = gradient · scale, rounded once: the product is made in double for sums in fixed point, whose integers have 63 bits.
template <class G, class T>
void widen(const G* gradient, double scale, T* out, std::int64_t count) {
  if constexpr (std::same_as<G, std::int64_t>) {
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<double>(static_cast<float>(gradient[i])) * scale);
  } else {
    const T factor = static_cast<T>(scale);
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(gradient[i]) * factor;
  }
}

void check(const Slice& weights, const Slice& other, const char* what) {
  require(other.count == weights.count && other.dtype == weights.dtype,
          "{} {} of type {} do not go with {} weights of type {}", other.count, what, name_of(other.dtype), weights.count,
          name_of(weights.dtype));
}

// Calls update(first, count, g) for every piece, g the scaled gradients of weights [first, first + count).
template <class T, class Update>
void for_pieces(const Slice& gradient, double scale, const Queue& queue, Update update) {
  parallel_for(queue.threads, gradient.count, [&](std::int64_t first, std::int64_t last) {
    T g[piece];
    for (std::int64_t i = first; i < last; i += piece) {
      const std::int64_t count = std::min(piece, last - i);
      visit(gradient.dtype, [&]<class G>(Type<G>) { widen(static_cast<const G*>(gradient.data) + i, scale, g, count); });
      update(i, count, g);
    }
  });
}

void check_gradient(const Slice& weights, const Slice& gradient) {
  require(weights.dtype == DType::f32 || weights.dtype == DType::f64, "weights are updated in f32 or f64, not {}",
          name_of(weights.dtype));
  require(gradient.count == weights.count, "{} gradients do not go with {} weights", gradient.count, weights.count);
}

}  // namespace

void adamw(const AdamStep& step, const Slice& weights, const Slice& moment1, const Slice& moment2, const Slice& gradient,
           double scale, const Queue& queue) {
  check_gradient(weights, gradient);
  check(weights, moment1, "means");
  check(weights, moment2, "variances");
  if (!weights.data || !gradient.data) return;
  const auto run = [&]<class T>(Type<T>) {
    T *w = static_cast<T*>(weights.data), *m = static_cast<T*>(moment1.data), *v = static_cast<T*>(moment2.data);
    const Adam<T> adam(step);
    for_pieces<T>(gradient, scale, queue,
                  [&](std::int64_t i, std::int64_t count, const T* g) { adam(w + i, m + i, v + i, g, count); });
  };
  weights.dtype == DType::f64 ? run(Type<double>{}) : run(Type<float>{});
}

void sgd(const SgdStep& step, const Slice& weights, const Slice& moment, const Slice& gradient, double scale,
         const Queue& queue) {
  check_gradient(weights, gradient);
  check(weights, moment, "momenta");
  if (!weights.data || !gradient.data) return;
  const auto run = [&]<class T>(Type<T>) {
    T *w = static_cast<T*>(weights.data), *m = static_cast<T*>(moment.data);
    const T rate = static_cast<T>(step.rate), momentum = static_cast<T>(step.momentum), decay = static_cast<T>(step.decay);
    for_pieces<T>(gradient, scale, queue, [&](std::int64_t first, std::int64_t count, const T* g) {
      for (std::int64_t i = 0; i < count; ++i) {
        m[first + i] = momentum * m[first + i] + g[i] + decay * w[first + i];
        w[first + i] -= rate * m[first + i];
      }
    });
  };
  weights.dtype == DType::f64 ? run(Type<double>{}) : run(Type<float>{});
}

void cast(const Slice& from, const Slice& to, const Queue& queue) {
  require(from.count == to.count, "{} elements cannot be cast to {}", from.count, to.count);
  if (!from.data || !to.data) return;
  visit_floating(from.dtype, [&]<class From>(Type<From>) {
    visit_floating(to.dtype, [&]<class To>(Type<To>) {
      const From* in = static_cast<const From*>(from.data);
      To* out = static_cast<To*>(to.data);
      parallel_for(queue.threads, from.count, [&](std::int64_t first, std::int64_t last) {
        using Wide = std::conditional_t<std::same_as<From, double> && std::same_as<To, double>, double, float>;
        for (std::int64_t i = first; i < last; ++i) out[i] = static_cast<To>(static_cast<Wide>(in[i]));
      });
    });
  });
}

}  // namespace chorale
