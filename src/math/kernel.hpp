// Helpers for the host kernels that process single rows or elements. A loop over elements of a 16-bit type computes in
// floats, and GCC vectorizes the type conversions.
#pragma once
#include <concepts>

#include "src/base/parallel.hpp"
#include "src/math/kernel_timer.hpp"

namespace chorale {

template <class T>
using Statistic = std::conditional_t<std::same_as<T, double>, double, float>;  // the type of sums and maxima over elements
                                                                               // of type T

inline DType statistic_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Returns the values of an optional tensor, or null if the tensor is absent.
template <class T>
T* values_or_null(const Tensor* tensor) {
  return tensor ? tensor->values<T>().data() : nullptr;
}

// Calls f(Type<T>{}) for the types in which gradients and sums of exponentials are accumulated.
template <class F>
decltype(auto) with_gradient_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(Type<float>{});
    case DType::f64: return f(Type<double>{});
    case DType::i64: return f(Type<std::int64_t>{});
    default: misuse(std::string("sums are f32, f64 or i64, not ") + name_of(dtype), std::source_location::current());
  }
}

// Does the same as with_gradient_type, and also accepts bf16, in which ranks can sum and store gradients.
template <class F>
decltype(auto) with_summed_gradient_type(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(Type<bf16>{});
  return with_gradient_type(dtype, f);
}

}  // namespace chorale
