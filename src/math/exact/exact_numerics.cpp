#include "src/math/exact/exact_numerics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/math/exact/fixed_point.hpp"

namespace chorale {
namespace exact {
namespace {

void require_f32(DType dtype, const char* what) {
  if (dtype == DType::f32) return;
  usage_error("exact numerics compute in f32", fmt::format("{} is {}", what, name_of(dtype)),
              "compute in f32, or with fast numerics (--numerics fast)");
}

}  // namespace

DType ExactNumerics::partial_type(DType compute) const { return gradient_type(compute); }

DType ExactNumerics::gradient_type(DType compute) const {
  require_f32(compute, "the type to compute in");
  return DType::i64;
}

double ExactNumerics::unit(const Site& site) const { return exact::unit(site); }

void ExactNumerics::check(const Site& site) const {
  const double highest = std::bit_cast<float>(site.highest), limit = greatest_addend(site);
  if (highest <= limit) return;  // false for NaN
  const char* what = std::isfinite(highest) ? "numbers have grown too large to be summed exactly"
                                            : "numbers are not finite any more, and cannot be summed exactly";
  throw Error(Exit::runtime, fmt::format("{}: {}", site.name, what),
              fmt::format("its greatest addend is {:.4g}; with up to {} addends, in units of 2^-{}, {:.4g} is allowed",
                          highest * exact::unit(site), site.addends, exponent(site), limit * exact::unit(site)),
              "lower the learning rate or clip gradients; fast numerics (--numerics fast) have no such limit");
}

void require_values(const Tensor& tensor, const char* what) { require_f32(tensor.dtype(), what); }

void require_sums(const Tensor& tensor, const char* what) {
  require(tensor.dtype() == DType::i64, "{} holds exact sums: it must be i64, not {}", what, name_of(tensor.dtype()));
}

bool any_phantom(std::initializer_list<const Tensor*> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor* tensor) { return tensor && tensor->phantom(); });
}

}  // namespace exact

std::unique_ptr<Numerics> exact_numerics() {
  exact::require_plain_arithmetic();
  return std::make_unique<exact::ExactNumerics>();
}

}  // namespace chorale
