// What a staged call asks of the host: nothing, however much the device still has to do before its buffers are ready. The emulated device's
// default stream is held, as if a long kernel were ahead, while calls are started and polled.
#include "tests/collectives/worlds.hpp"
#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

constexpr std::int64_t count = 1 << 20;  // f32: it goes in pieces

std::vector<float> fetched(Memory& memory, const Buffer& buffer) {
  std::vector<float> values(count);
  memory.copy_out(values.data(), buffer.data(), buffer.bytes());
  return values;
}

}  // namespace

TEST_CASE("device: a staged call waits neither when it is started nor when it is polled", "[gpu]") {
  const DevicePlugin plugin;
  auto* const waits = plugin.find<std::int64_t()>("chorale_emulated_waits");
  auto* const hold = plugin.find<void(bool)>("chorale_emulated_hold");
  if (!waits) return;
  const std::shared_ptr<Memory> memory = cuda_memory(plugin, 0);
  SystemClock clock;
  ThreadWorld one(1);
  Communicator world = open_world(one.transport(0), clock);
  world.use_device(memory);
  Ledger ledger;
  Allocator device(*memory, ledger);
  const std::vector<float> ones(count, 1), twos(count, 2);
  const Buffer x = device.allocate(4 * count, Category::workspace), y = device.allocate(4 * count, Category::workspace),
               z = device.allocate(4 * count, Category::workspace);
  const auto slice = [&](const Buffer& buffer) { return Slice{buffer.data(), count, DType::f32, memory->device()}; };
  const Call call{Collective::all_reduce, slice(x), slice(y), Redop::avg};
  world.run(call);  // what it needs is made
  memory->copy_in(x.data(), ones.data(), x.bytes());
  memory->copy_in(y.data(), twos.data(), y.bytes());

  hold(true);
  memory->clear(x.data(), x.bytes());
  memory->copy(z.data(), y.data(), y.bytes());  // reads what the call will write
  const std::int64_t before = waits();
  Request request = world.start(call);
  for (int poll = 0; poll < 100; ++poll) CHECK(!request.test());
  CHECK(waits() == before);
  hold(false);
  for (int poll = 0; poll < 1000 && !request.test(); ++poll) {}
  CHECK(request.test());
  CHECK(waits() == before);
  CHECK((fetched(*memory, y) == std::vector<float>(count, 0)));
  CHECK((fetched(*memory, z) == twos));
}
