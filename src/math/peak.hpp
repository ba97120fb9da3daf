// How fast the machine multiplies matrices, by the path that models take: what a training step is measured against (its MFU says which share
// of this it reaches). Squares of 256 to 1024 on the host, to 8192 on a GPU, over and over: the fastest counts. Takes about a second.
#pragma once
#include <vector>

#include "src/math/device_kernels.hpp"

namespace chorale {

// Floating-point operations a second of `cores` cores together, each with products of its own. They are taken from `cpus`, which are at least as
// many; if that is empty, the system chooses.
double product_peak(DType dtype, int cores, const std::vector<int>& cpus);
// The same for the GPU that `memory` is on.
double product_peak(DType dtype, Memory& memory, const DevicePlugin& device);

}  // namespace chorale
