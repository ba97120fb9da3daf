// Helpers of the host kernels that work on single rows or elements. A loop over elements of a 16-bit type computes in
// floats, and GCC vectorizes the conversions. Sums use a fixed number of lanes, so their bits do not depend on the
// machine's vector width.
#pragma once
#include <array>
#include <concepts>

#include "src/base/parallel.hpp"
#include "src/math/kernel_timer.hpp"

namespace chorale {

template <class T>
using Statistic = std::conditional_t<std::same_as<T, double>, double, float>;  // the type of sums and maxima over T

inline DType statistic_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// The values of an optional tensor; null if there is none.
template <class T>
T* values_or_null(const Tensor* tensor) {
  return tensor ? tensor->values<T>().data() : nullptr;
}

// Calls f(Type<T>{}) for the types that gradients and sums of exponentials are accumulated in.
template <class F>
decltype(auto) with_gradient_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(Type<float>{});
    case DType::f64: return f(Type<double>{});
    case DType::i64: return f(Type<std::int64_t>{});
    default: misuse(std::string("sums are f32, f64 or i64, not ") + name_of(dtype), std::source_location::current());
  }
}

// The same, and bf16: the type in which ranks may sum gradients and store them.
template <class F>
decltype(auto) with_summed_gradient_type(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(Type<bf16>{});
  return with_gradient_type(dtype, f);
}

// K sums at once over j in [0, count), where term(j) returns K addends. Element j is added to lane j % 32. At the end lane l
// is added to lane l + 16, then the first 8 lanes to the next 8, and so on.
template <std::size_t K, class Term>
std::array<float, K> lane_sums(std::int64_t count, Term term) {
  constexpr std::int64_t lanes = 32;
  float sum[K][lanes] = {};
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::array<float, K> terms = term(j + lane);
      for (std::size_t k = 0; k < K; ++k) sum[k][lane] += terms[k];
    }
  for (std::int64_t lane = 0; j + lane < count; ++lane) {
    const std::array<float, K> terms = term(j + lane);
    for (std::size_t k = 0; k < K; ++k) sum[k][lane] += terms[k];
  }
  std::array<float, K> total;
  for (std::size_t k = 0; k < K; ++k) {
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t lane = 0; lane < half; ++lane) sum[k][lane] += sum[k][lane + half];
    total[k] = sum[k][0];
  }
  return total;
}

}  // namespace chorale
