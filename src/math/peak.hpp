// How fast the machine multiplies matrices, by the path that models take: what a training step is measured against (its MFU says which share
// of this it reaches). Squares of 256 to 1024 on the host, to 8192 on a GPU, over and over: the fastest counts. Takes about a second.
#pragma once
#include <vector>

#include "src/math/device_kernels.hpp"

namespace chorale {

// Floating-point operations a second of so many cores at once, each with products of its own. `cpus` are those they may be taken from, at least
// as many; an empty list leaves it to the system.
double product_peak(DType dtype, int cores, const std::vector<int>& cpus);
// Of the GPU whose memory it is.
double product_peak(DType dtype, Memory& memory, const DevicePlugin& device);

}  // namespace chorale
