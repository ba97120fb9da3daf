// Helpers for tests of kernels: random tensors, bitwise equality, the distance between two tensors, the text of an error,
// and gradients by central differences.
#pragma once
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/random.hpp"
#include "src/memory/tensor.hpp"

namespace chorale {

// Host memory with a ledger, and functions that create tensors in this memory.
struct Desk {
  HostMemory memory;
  Ledger ledger;
  Allocator allocator{memory, ledger};
  std::uint32_t made = 0;

  Tensor empty(Shape shape, DType dtype) { return Tensor(allocator, std::move(shape), dtype, Category::workspace); }
  Tensor random(Shape shape, DType dtype, double scale = 1) {  // uniform in (−scale, scale)
    const Tensor t = empty(std::move(shape), dtype);
    const Random random{.seed = 7, .site = made++};
    visit(dtype, [&]<class T>(Type<T>) {
      const auto values = t.values<T>();
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(static_cast<float>(scale * (2 * random.uniform(i) - 1)));
    });
    return t;
  }
  Tensor filled(Shape shape, DType dtype, double value) {
    const Tensor t = empty(std::move(shape), dtype);
    visit(dtype, [&]<class T>(Type<T>) {
      for (T& v : t.values<T>()) v = static_cast<T>(static_cast<float>(value));
    });
    return t;
  }
};

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.slice().data, b.slice().data, static_cast<std::size_t>(a.bytes())) == 0;
}

inline std::vector<double> doubles(const Tensor& tensor) {
  std::vector<double> all;
  visit(tensor.dtype(), [&]<class T>(Type<T>) {
    for (const T& v : tensor.values<T>()) {
      if constexpr (sizeof(T) == 2)
        all.push_back(static_cast<float>(v));
      else
        all.push_back(static_cast<double>(v));
    }
  });
  return all;
}

inline double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Returns ‖a − b‖ / ‖b‖, or infinity if any element is NaN.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  const double whole = norm(b), off = std::sqrt(sum);
  if (std::isnan(off)) return INFINITY;
  return off == 0 ? 0 : whole == 0 ? INFINITY : off / whole;
}

// Returns the text of the error that the call throws, or "" if it throws none.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Lists of row counts, one count per leaf (group of tokens). Some leaves are empty, and some are longer than a panel of
// exact products.
inline std::vector<std::vector<std::int64_t>> uneven_leaves() {
  return {{3, 0, 5, 1}, {0, 600, 7, 0, 520, 0}, std::vector<std::int64_t>(1100, 2)};
}

// Returns the gradient of f at x by central differences.
inline std::vector<double> numerical_gradient(const std::function<double(const std::vector<double>&)>& f,
                                              std::vector<double> x, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double here = x[i];
    x[i] = here + step;
    const double above = f(x);
    x[i] = here - step;
    gradient[i] = (above - f(x)) / (2 * step);
    x[i] = here;
  }
  return gradient;
}

}  // namespace chorale
