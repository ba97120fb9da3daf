#include "src/math/optimizer_steps.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/optimizer_steps.hpp"

namespace chorale {
namespace {

// Sums in fixed point have 63 bits: their product is made in double, and rounded once more.
template <class Gradient>
float scaled(Gradient gradient, double scale) {
  if constexpr (std::same_as<Gradient, float>) return gradient * static_cast<float>(scale);
  return static_cast<float>(static_cast<double>(gradient) * scale);
}

// The reference in floats, each rounding written down. Ranges do not overlap: that is what ivdep says.
template <class Gradient>
void adamw_floats(const AdamStep& step, float* w, float* m, float* v, const Gradient* gradient, double scale,
                  std::int64_t count) {
  const auto beta1 = static_cast<float>(step.beta1), rest1 = static_cast<float>(1 - step.beta1);
  const auto beta2 = static_cast<float>(step.beta2), rest2 = static_cast<float>(1 - step.beta2);
  const auto correction1 = static_cast<float>(step.correction1), correction2 = static_cast<float>(step.correction2);
  const auto epsilon = static_cast<float>(step.epsilon), rate = static_cast<float>(step.rate);
  const auto decay = static_cast<float>(step.decay);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = scaled(gradient[i], scale);
    m[i] = __builtin_fmaf(beta1, m[i], rest1 * g);
    v[i] = __builtin_fmaf(beta2, v[i], rest2 * g * g);
    const float direction = m[i] * correction1 / (std::sqrt(v[i] * correction2) + epsilon);
    w[i] = __builtin_fmaf(-rate, __builtin_fmaf(decay, w[i], direction), w[i]);
  }
}

template <class Gradient>
void sgd_floats(const SgdStep& step, float* w, float* m, const Gradient* gradient, double scale, std::int64_t count) {
  const auto momentum = static_cast<float>(step.momentum), rate = static_cast<float>(step.rate);
  const auto decay = static_cast<float>(step.decay);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = scaled(gradient[i], scale);
    m[i] = __builtin_fmaf(momentum, m[i], __builtin_fmaf(decay, w[i], g));
    w[i] = __builtin_fmaf(-rate, m[i], w[i]);
  }
}

// To 16 bits a double goes through a float whose last bit says whether anything was cut off (rounding to odd): two roundings to nearest
// could end at the wrong neighbour.
inline float to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(near);
  const bool grows = (near < value) == !std::signbit(value);
  const bool turns = near != value && bits % 2 == 0;
  return std::bit_cast<float>(turns ? (grows ? bits + 1 : bits - 1) : bits);
}

template <class From, class To>
To converted(From value) {
  if constexpr (std::same_as<From, double> && sizeof(To) == 2)
    return static_cast<To>(to_odd(value));
  else if constexpr (sizeof(From) == 2)
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

void check(const Slice& weights, const Slice& moment, const Slice& gradient) {
  require(weights.dtype == DType::f32 || weights.dtype == DType::f64, "an optimizer's weights are f32 or f64, not {}",
          name_of(weights.dtype));
  require(moment.dtype == weights.dtype && moment.count == weights.count && gradient.count == weights.count,
          "{} weights of {} got {} moments of {} and {} gradients", weights.count, name_of(weights.dtype), moment.count,
          name_of(moment.dtype), gradient.count);
}

template <class T>
T* pointer(const Slice& slice) {
  return static_cast<T*>(slice.data);
}

}  // namespace

void adamw(const AdamStep& step, const Slice& weights, const Slice& moment1, const Slice& moment2, const Slice& gradient,
           double scale, const Queue& queue) {
  check(weights, moment1, gradient);
  check(weights, moment2, gradient);
  if (!weights.data || !moment1.data || !moment2.data || !gradient.data) return;
  if (queue.device) return queue.device->adamw(step, weights, moment1, moment2, gradient, scale, queue);
  with_gradient_type(gradient.dtype, [&]<class G>(Type<G>) {
    parallel_for(queue.threads, weights.count, [&](std::int64_t first, std::int64_t last) {
      const auto run = [&]<class T>(Type<T>, auto kernel) {
        kernel(step, pointer<T>(weights) + first, pointer<T>(moment1) + first, pointer<T>(moment2) + first,
               pointer<G>(gradient) + first, scale, last - first);
      };
      if (weights.dtype == DType::f64)
        run(Type<double>{}, reference::adamw<double, G>);
      else
        run(Type<float>{}, adamw_floats<G>);
    });
  });
}

void sgd(const SgdStep& step, const Slice& weights, const Slice& moment, const Slice& gradient, double scale,
         const Queue& queue) {
  check(weights, moment, gradient);
  if (!weights.data || !moment.data || !gradient.data) return;
  if (queue.device) return queue.device->sgd(step, weights, moment, gradient, scale, queue);
  with_gradient_type(gradient.dtype, [&]<class G>(Type<G>) {
    parallel_for(queue.threads, weights.count, [&](std::int64_t first, std::int64_t last) {
      const auto run = [&]<class T>(Type<T>, auto kernel) {
        kernel(step, pointer<T>(weights) + first, pointer<T>(moment) + first, pointer<G>(gradient) + first, scale,
               last - first);
      };
      if (weights.dtype == DType::f64)
        run(Type<double>{}, reference::sgd<double, G>);
      else
        run(Type<float>{}, sgd_floats<G>);
    });
  });
}

void add(const Slice& from, const Slice& to, const Queue& queue) {
  require(from.count == to.count && from.dtype == to.dtype, "{} elements of {} cannot be added to {} of {}", from.count,
          name_of(from.dtype), to.count, name_of(to.dtype));
  if (!to.data) return;
  const std::array<const void*, 2> both{to.data, from.data};
  if (queue.device) return queue.device->reduce(Redop::sum, to.dtype, to.data, both, to.count, queue);
  reduce(Redop::sum, to.dtype, to.data, both, to.count);
}

void cast(const Slice& from, const Slice& to, const Queue& queue) {
  require(from.count == to.count, "{} numbers cannot be cast to {}", from.count, to.count);
  if (!from.data || !to.data) return;
  if (queue.device) return queue.device->cast(from, to, queue);
  visit_floating(from.dtype, [&]<class From>(Type<From>) {
    visit_floating(to.dtype, [&]<class To>(Type<To>) {
      const From* in = pointer<From>(from);
      To* out = pointer<To>(to);
      parallel_for(queue.threads, to.count, [&](std::int64_t first, std::int64_t last) {
#pragma GCC ivdep
        for (std::int64_t i = first; i < last; ++i) out[i] = converted<From, To>(in[i]);
      });
    });
  });
}

}  // namespace chorale
