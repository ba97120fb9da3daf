#include "collectives/backends/threads.hpp"

#include <fmt/format.h>

#include <bit>
#include <thread>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "src/base/wait.hpp"

namespace chorale {

using namespace mapped;

Availability probe_threads() { return {true, fmt::format("{} hardware threads", std::thread::hardware_concurrency())}; }

// All ranks share one address space. On all known machines, the highest bit of a user-space address is 0, so this bit can
// serve as the flag is_mapped.
class ThreadWorld::ThreadReach final : public Reach {
 public:
  Location locate(const void* mine) const override { return std::bit_cast<Location>(mine) | is_mapped; }
  void* map(int, Location location) const override { return std::bit_cast<void*>(location & ~is_mapped); }
  bool has_kernel_copies() const override { return false; }  // not needed, because all memory is mapped
  void read(int, Location, void*, std::int64_t) const override {}
  void write(int, Location, const void*, std::int64_t) const override {}
  Allocator& memory() override { return allocator_; }

 private:
  HostMemory heap_;
  Ledger ledger_;
  Allocator allocator_{heap_, ledger_};
};

class ThreadWorld::ThreadTransport final : public MappedTransport {
 public:
  ThreadTransport(ThreadWorld& world, int rank)
      : MappedTransport(world.pages_[static_cast<std::size_t>(rank)]), world_(world), rank_(rank) {}

  const char* name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  std::vector<std::int64_t> exchange(std::int64_t mine) override {
    world_.numbers_[static_cast<std::size_t>(rank_)] = mine;
    world_.meet();
    const std::vector<std::int64_t> all = world_.numbers_;
    world_.meet();  // all ranks have read the numbers before any rank writes again
    return all;
  }

 private:
  ThreadWorld& world_;
  int rank_;
};

ThreadWorld::ThreadWorld(int size) : numbers_(static_cast<std::size_t>(size)) {
  for (int r = 0; r < size; ++r) pages_.push_back(std::make_shared<FlagPages>(std::make_unique<ThreadReach>()));
}

ThreadWorld::~ThreadWorld() = default;

std::shared_ptr<Transport> ThreadWorld::transport(int rank) { return std::make_shared<ThreadTransport>(*this, rank); }

void ThreadWorld::meet() {
  const int all = (arrivals_++ / size() + 1) * size();
  SystemClock clock;
  wait_until([&] { return arrivals_ >= all; }, {.clock = clock, .spins = 100}, "the other threads");
}

}  // namespace chorale
