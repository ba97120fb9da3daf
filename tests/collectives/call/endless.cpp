// A program of endless collectives, for tests that kill its ranks. TEST_BACKEND names the backend. If TEST_MEMORY is heap,
// the buffers are in ordinary memory.
#include <cstdio>

#include "collectives/call/communicator.hpp"
#include "src/memory/memory.hpp"
#include "tests/spmd.hpp"

using namespace chorale;
using namespace chorale::test;

TEST_CASE("sums until it is killed", "[.endless-collectives]") {
  SystemClock clock;
  Communicator c = open_world(environment("TEST_BACKEND", "shm"), world(), clock);
  HostMemory heap;
  Ledger ledger;
  Allocator ordinary(heap, ledger);
  const bool is_ordinary = environment("TEST_MEMORY", "symmetric") == "heap";
  const Buffer memory = (is_ordinary ? ordinary : c.allocator()).allocate(1 << 20, Category::comm);
  for (;; alive()) {
    Communicator group = c.split(0, 0);
    for (int i = 0; i < 100; ++i) group.all_reduce({memory.data(), memory.bytes() / 4, DType::f32});
    if (c.rank() == 0) std::puts("sums");
    std::fflush(stdout);
  }
}
