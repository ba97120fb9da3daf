// The rate of products that suit the machine, by the path that models take: squares of 256 to 1024 on the host, to 8192 on a GPU. The share
// of it that a training step reaches (its MFU) says how much more there is to win. Takes less than a second.
#pragma once
#include "src/math/device_kernels.hpp"

namespace chorale {

// Floating-point operations a second; of the GPU whose memory it is, where there is a device.
double measured_product_peak(DType dtype, Memory& memory, const DevicePlugin* device, int threads);

}  // namespace chorale
