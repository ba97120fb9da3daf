// Tests device buffers on backends that can access only host memory. Device buffers are staged through the host, and every
// call gives the same results as with host buffers. `make test` runs the tests of this file twice: with FarMemory in place
// of GPU memory, and on the emulated GPU.
#include "tests/collectives/device_checks.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

std::string nobody_copies(Communicator& c) {
  const Slice far{reinterpret_cast<void*>(64), 100, DType::f32, {Device::Kind::cuda, 0}};
  const std::string said = thrown_by([&] { c.all_reduce(far); });
  return said.find("use_device was not called") != std::string::npos ? "" : said;
}

constexpr Check without_a_device[] = {{"device buffers without use_device are refused", nobody_copies}};

}  // namespace

TEST_CASE("device buffers are staged on threads", "[threads]") {
  on_thread_worlds(device_checks, {1, 2, 3, 5, 8});
  on_thread_worlds(without_a_device, {1, 2});
}

TEST_CASE("device buffers are staged on every backend", "[spmd][device]") {
  on_every_backend(device_checks);
  on_every_backend(without_a_device);
}
