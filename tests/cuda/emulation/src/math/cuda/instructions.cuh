// The instructions of src/math/cuda/instructions.cuh in plain C++; stands before it on the path.
#pragma once
#include <cuda_runtime.h>

#include "src/memory/dtype.hpp"

namespace chorale::cuda {

template <class T>
float widen(T value) {
  return static_cast<float>(value);
}
template <class T>
T narrow(float value, Type<T>) {
  return static_cast<T>(value);
}

}  // namespace chorale::cuda
