// The machine's peak rate of matrix products, measured with the same code path that models use. The MFU of a training step
// is relative to this rate. The products are square, of size 256 to 1024 on the host and up to 8192 on a GPU. The products
// are repeated, and the fastest repetition counts. A measurement takes about a second.
#pragma once
#include <vector>

#include "src/math/device_kernels.hpp"

namespace chorale {

// Returns the total FLOP/s of `cores` cores, each of which runs its own products. The cores are taken from `cpus`, which
// must list at least `cores` CPUs. If `cpus` is empty, the operating system chooses the cores.
double product_peak(DType dtype, int cores, const std::vector<int>& cpus);
// Returns the FLOP/s of the GPU that `memory` is on.
double product_peak(DType dtype, Memory& memory, const DevicePlugin& device);

}  // namespace chorale
