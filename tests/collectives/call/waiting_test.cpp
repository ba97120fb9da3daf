// A collective call on device buffers must not block the host while earlier device work is still running. The call must
// access its buffers only after the earlier work has completed. The test blocks the default stream of the emulated device,
// as a long kernel would, while it starts and polls a call.
#include "tests/collectives/device_checks.hpp"

namespace chorale::test {
namespace {

constexpr std::int64_t count = 300'000;  // number of f32 elements; enough that the buffers are staged in several parts

std::string waits_for_nothing(Communicator& c) {
  const DevicePlugin plugin;
  auto* const waits = plugin.require<std::int64_t()>("chorale_emulated_waits");
  auto* const hold = plugin.require<void(bool)>("chorale_emulated_hold");
  FarDevice device(c);
  Memory& memory = device.memory();
  const std::vector<float> ones(count, 1), twos(count, 2);
  const Buffer x = device.allocator.allocate(4 * count, Category::workspace),
               y = device.allocator.allocate(4 * count, Category::workspace),
               z = device.allocator.allocate(4 * count, Category::workspace);
  const auto slice = [&](const Buffer& buffer) { return Slice{buffer.data(), count, DType::f32, memory.device()}; };
  const auto is_all = [&](const Buffer& buffer, float value) {
    std::vector<float> values(count);
    memory.copy_out(values.data(), buffer.data(), buffer.bytes());
    return std::ranges::count(values, value) == count;
  };
  c.choose(Collective::all_reduce, "ring");
  const Call call{Collective::all_reduce, slice(x), slice(y), Redop::avg};
  memory.copy_in(x.data(), ones.data(), x.bytes());
  c.run(call);  // allocates the memory that later calls reuse
  if (!is_all(y, 1)) return "an average is wrong";
  memory.copy_in(y.data(), twos.data(), y.bytes());

  hold(true);
  memory.clear(x.data(), x.bytes());
  memory.copy(z.data(), y.data(), y.bytes());  // reads the buffer that the call will write
  const std::int64_t before = waits();
  Request request = c.start(call);
  bool early = false;
  for (int poll = 0; poll < 100 * (1 + c.rank()); ++poll) early |= request.test();
  hold(false);
  while (!request.test()) {}
  if (early) return "a call was over while the device was held";
  if (waits() != before) return fmt::format("a call waited {} times", waits() - before);
  if (!is_all(y, 0)) return "work enqueued before the call is missing in its result";
  return is_all(z, 2) ? "" : "the result was written before earlier device work had read the buffer";
}

constexpr Check while_held[] = {{"calls on a device that is held", waits_for_nothing}};

}  // namespace

TEST_CASE("a call on device buffers blocks neither when started nor when polled", "[spmd][device]") {
  const DevicePlugin plugin;
  if (!plugin.find<void(bool)>("chorale_emulated_hold")) return;
  on_every_backend(while_held);
  SystemClock clock;
  if (!probe(backend_named("nccl")).works) return;
  const std::string trouble = trouble_of(while_held[0], open_world("nccl", world(), clock));
  REQUIRE_ALL(trouble == "");
}

}  // namespace chorale::test
