// The kernels of src/math on a device. kernels.cu enters these functions in the table DeviceKernels, which has their
// signatures.
#pragma once
#include <type_traits>

#include "src/math/device_kernels.hpp"

namespace chorale::cuda {

#define CHORALE_DECLARE(name) std::remove_pointer_t<decltype(DeviceKernels::name)> name;
CHORALE_HOST_KERNELS(CHORALE_DECLARE)
CHORALE_OWN_KERNELS(CHORALE_DECLARE)
#undef CHORALE_DECLARE

}  // namespace chorale::cuda
