// The machine's peak rate of matrix products, measured on the code path that models use. The MFU of a training step is
// relative to this rate. Square products of size 256 to 1024 on the host, up to 8192 on a GPU, are repeated, and the fastest
// repetition counts. A measurement takes about a second.
#pragma once
#include <vector>

#include "src/math/device_kernels.hpp"

namespace chorale {

// FLOP/s of `cores` cores together; each core runs its own products. The cores come from `cpus`, which lists at least
// that many. If `cpus` is empty, the system chooses.
double product_peak(DType dtype, int cores, const std::vector<int>& cpus);
// FLOP/s of the GPU that `memory` is on.
double product_peak(DType dtype, Memory& memory, const DevicePlugin& device);

}  // namespace chorale
