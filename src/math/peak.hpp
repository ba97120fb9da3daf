// The rate of a product that suits the machine: 1024³, by the path that models take. The share of it that a training step reaches (its
// MFU) says how much more there is to win. Takes less than a second.
#pragma once
#include "src/memory/dtype.hpp"

namespace chorale {

double measured_product_peak(DType dtype, int threads);  // floating-point operations a second

}  // namespace chorale
