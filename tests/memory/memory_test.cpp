#include "src/memory/memory.hpp"

#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "src/base/error.hpp"
#include "src/memory/buffer.hpp"
#include "src/memory/device_plugin.hpp"
#include "src/memory/tensor.hpp"
#include "tests/device.hpp"

using namespace chorale;

TEST_CASE("every byte is accounted for, by category, now and at its peak") {
  HostMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
  {
    const Buffer a = allocator.allocate(1000, Category::params);
    Buffer b = allocator.allocate(500, Category::grads);
    CHECK((ledger.current(Category::params) == 1000 && ledger.total() == 1500));
    b = allocator.allocate(200, Category::grads);  // the old buffer is freed after the new buffer is allocated
    CHECK((ledger.current(Category::grads) == 200 && ledger.peak(Category::grads) == 700));
    CHECK(ledger.summary() == "params 1000 B, grads 200 B");
    const Buffer c = std::move(b);
    CHECK(ledger.current(Category::grads) == 200);
  }
  CHECK((ledger.total() == 0 && ledger.total_peak() == 1700 && ledger.summary() == "nothing"));
  CHECK((ledger.at_peak(Category::params) == 1000 && ledger.at_peak(Category::grads) == 700));
}

TEST_CASE("the error for memory beyond the limit names the category, and the ledger stays right") {
  HostMemory memory;
  Ledger ledger(4096);
  Allocator allocator(memory, ledger);
  const Buffer held = allocator.allocate(3000, Category::params);
  CHECK_THROWS_WITH(allocator.allocate(2000, Category::optimizer),
                    says("memory refused: 2.0 KiB for optimizer") && says("held now: params 2.9 KiB"));
  CHECK_THROWS(allocator.allocate(INT64_MAX, Category::optimizer));
  CHECK_THROWS(allocator.allocate(INT64_MAX / 2, Category::optimizer));
  CHECK(ledger.total() == 3000);
  CHECK_NOTHROW(allocator.allocate(1096, Category::optimizer));
}

TEST_CASE("the error for memory that the machine refuses names the category too") {
  HostMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the sanitizers themselves map terabytes
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit tight{rlim_t{2} << 30, before.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
  CHECK_THROWS_WITH(
      allocator.allocate(std::int64_t{1} << 40, Category::activations),
      says("memory refused: 1.0 TiB for activations") && says("under a limit of the address space (ulimit -v); "));
  setrlimit(RLIMIT_AS, &before);
  CHECK_THROWS(allocator.allocate(INT64_MAX, Category::activations));
#endif
  CHECK_THROWS(allocator.allocate(-1, Category::activations));
  CHECK(ledger.total() == 0);
}

TEST_CASE("host memory lends aligned bytes that keep what is written") {
  HostMemory memory;
  Ledger ledger;
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 100'000}) {
    const Buffer buffer(memory, ledger, bytes, Category::data);
    REQUIRE(buffer.data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    std::memset(buffer.data(), 0x5a, static_cast<std::size_t>(bytes));
    if (bytes) CHECK(static_cast<char*>(buffer.data())[bytes - 1] == 0x5a);
  }
  CHECK(name_of(Device{Device::Kind::cuda, 3}) == "cuda:3");
}

TEST_CASE("tensors share storage; narrowing and viewing move no bytes") {
  HostMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
  const Tensor x(allocator, {3, 4}, DType::i32, Category::activations);
  for (int i = 0; i < 12; ++i) x.values<std::int32_t>()[static_cast<std::size_t>(i)] = i;
  const Tensor rows = x.narrow(1, 2);
  CHECK((rows.shape() == Shape{2, 4} && rows.values<std::int32_t>()[0] == 4));
  CHECK(rows.narrow(1, 1).values<std::int32_t>()[3] == 11);
  CHECK(x.view({2, -1}).shape() == Shape{2, 6});
  CHECK((x.view({12}).slice().count == 12 && x.narrow(3, 0).count() == 0));
  CHECK(ledger.total() == 48);
  rows.values<std::int32_t>()[0] = 77;
  CHECK(x.values<std::int32_t>()[4] == 77);
  CHECK(x.slice().narrow(4, 2).bytes() == 8);

  CHECK_THROWS(x.narrow(2, 2));
  CHECK_THROWS(x.narrow(-1, 1));
  CHECK_THROWS(x.narrow(INT64_MAX, 1));
  CHECK_THROWS(x.slice().narrow(1, INT64_MAX));
  CHECK_THROWS(x.view({5, -1}));
  CHECK_THROWS(x.view({13}));
  CHECK_THROWS(x.dim(2));
  CHECK_THROWS(x.slice().narrow(11, 2));
  CHECK_THROWS_WITH(x.values<float>(), says("a i32 tensor was read as f32"));
  CHECK_THROWS(Tensor(allocator, {1LL << 40, 1LL << 40}, DType::f32, Category::data));
  CHECK_THROWS(Tensor().slice());
}

TEST_CASE("a phantom tensor has a shape and a cost, but no values") {
  PhantomMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
  const Tensor huge(allocator, {175'000, 1'000'000}, DType::f32, Category::params);  // GPT-3's parameters
  CHECK(ledger.current(Category::params) == 700'000'000'000);
  CHECK((huge.phantom() && huge.narrow(5, 2).phantom() && huge.slice().data == nullptr));
  CHECK(huge.slice().narrow(10, 10).data == nullptr);
  CHECK_THROWS_WITH(huge.values<float>(), says("a phantom tensor of shape [175000, 1000000] has no values"));
}

TEST_CASE("CUDA memory works with a device and is refused by name without one") {
  const DevicePlugin plugin;
  if (!plugin.loaded()) {
    CHECK_THROWS_WITH(cuda_memory(plugin, 0), says("CUDA is not available"));
    return;
  }
  std::string why_none;
  const bool has_device = !cuda_devices(plugin, &why_none).empty();
  CHECK(has_device == why_none.empty());
  Ledger ledger;
  for (const int index : {-1, 0}) {
    const auto memory = cuda_memory(plugin, index);
    CHECK(name_of(memory->device()) == (index < 0 ? "pinned" : "cuda:0"));
    if (has_device)
      CHECK(Buffer(*memory, ledger, 1 << 20, Category::workspace).data() != nullptr);
    else
      CHECK_THROWS_WITH(Buffer(*memory, ledger, 1 << 20, Category::workspace),
                        says("memory refused: 1.0 MiB for workspace"));
  }
}

TEST_CASE("the ranks of a host take its devices round-robin") {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int devices = 1; devices <= 4; ++devices) {
      std::array<int, 4> sharers{};
      for (int place = 0; place < ranks; ++place)
        ++sharers.at(static_cast<std::size_t>(DeviceShare{place, ranks, devices}.index()));
      for (int place = 0; place < ranks; ++place) {
        const DeviceShare share{place, ranks, devices};
        CHECK(share.sharers() == sharers.at(static_cast<std::size_t>(share.index())));
        CHECK(share.crowded() == (std::ranges::max(sharers) > 1));
      }
    }
}

TEST_CASE("CUDA memory receives host writes at once, in order and completely", "[gpu]") {
  const DevicePlugin plugin;
  if (!test::has_device(plugin)) return;
  const auto memory = cuda_memory(plugin, 0);
  Ledger ledger;
  const std::int64_t large = (1 << 20) + 4, small = 40;  // `large` exceeds a staging slot
  const Buffer there(*memory, ledger, large, Category::workspace);
  std::vector<std::int32_t> host(large / 4), back(large / 4);
  std::iota(host.begin(), host.end(), 7);
  memory->copy_in(there.data(), host.data(), large);
  for (std::int32_t i = 0; i < 100; ++i) {  // there are more copies than slots, and some copies have the same destination
    std::array<std::int32_t, small / 4> few;
    few.fill(i);
    const std::int64_t first = i % 60 * (small / 4);
    memory->copy_in(static_cast<std::int32_t*>(there.data()) + first, few.data(), small);
    std::copy(few.begin(), few.end(), host.begin() + first);
  }
  memory->copy_out(back.data(), there.data(), large);
  CHECK((back == host));
}
