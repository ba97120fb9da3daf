// Tests that the pool reuses returned memory.
#include "src/memory/pool.hpp"

#include "tests/catch.hpp"
#include "tests/memory/counted.hpp"

using namespace chorale;
using chorale::test::Counted;

TEST_CASE("a pool lends returned blocks again") {
  Counted memory;
  void *smaller = nullptr, *larger = nullptr;
  {
    Pool pool(memory);
    void* const first = pool.take(1000);
    void* const second = pool.take(1000);
    pool.give_back(first, 1000);
    pool.give_back(second, 1000);
    CHECK(pool.take(1000) == second);  // the block that was returned last
    CHECK(pool.take(890) == first);    // a block can be up to an eighth larger than the request
    CHECK(memory.taken == 2);
    pool.give_back(first, 890);
    CHECK(pool.take(1000) == first);  // the block still has its full size
    pool.give_back(first, 1000);
    smaller = pool.take(880);
    larger = pool.take(1001);
    CHECK((smaller != first && larger != first));
    CHECK(memory.held == 1000 + 1000 + 880 + 1001);
    pool.give_back(second, 1000);
  }
  CHECK(memory.held == 880 + 1001);  // blocks that were not returned do not belong to the pool
  memory.give_back(smaller, 880);
  memory.give_back(larger, 1001);
}

TEST_CASE("a pool returns blocks of 0 bytes too") {
  Counted memory;
  {
    Pool pool(memory);
    pool.give_back(pool.take(0), 0);
    CHECK(memory.blocks == 1);
  }
  CHECK(memory.blocks == 0);
}

TEST_CASE("a pool knows how fragmented its kept blocks are") {
  HostMemory host;
  Pool pool(host);
  void* const places[] = {pool.take(3000), pool.take(1000), pool.take(500)};
  CHECK((pool.kept().bytes == 0 && pool.kept().largest == 0));
  pool.give_back(places[1], 1000);
  CHECK((pool.kept().bytes == 1000 && pool.kept().largest == 1000));
  pool.give_back(places[0], 3000);
  pool.give_back(places[2], 500);
  CHECK((pool.kept().bytes == 4500 && pool.kept().largest == 3000));
  void* const again = pool.take(2900);
  CHECK((pool.kept().bytes == 1600 && pool.kept().largest == 1000));  // the block in use has 100 spare bytes
  pool.give_back(again, 2900);
  CHECK((pool.kept().bytes == 4500 && pool.kept().largest == 3000));
}

// The sizes vary like the rows of experts. In each step, the size of a tensor differs from its mean by up to 8 %.
TEST_CASE("a pool holds no more than its limit while what is lent fits, whatever the sizes") {
  Counted memory;
  Pool pool(memory);
  constexpr std::int64_t limit = 16 * 1080;
  pool.hold_at_most(limit);
  std::vector<std::pair<void*, std::int64_t>> lent;
  for (std::int64_t step = 0; step < 50; ++step) {
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t bytes = 1080 - 10 * ((step + 3 * i) % 17);
      lent.emplace_back(pool.take(bytes), bytes);
      CHECK(memory.held <= limit);
    }
    for (const auto& [place, bytes] : lent) pool.give_back(place, bytes);
    lent.clear();
  }
}

TEST_CASE("a pool does not pile up blocks when sizes change from step to step") {
  Counted memory;
  Pool pool(memory);
  std::int64_t most = 0;
  for (std::int64_t step = 0; step < 1000; ++step) {
    const std::int64_t bytes = 1000 * (400 + step * 41 % 101);  // 400 kB to 500 kB
    void* const fixed = pool.take(1'000'000);
    void* const changing = pool.take(bytes);
    most = std::max(most, memory.held);
    pool.give_back(changing, bytes);
    pool.give_back(fixed, 1'000'000);
  }
  CHECK(most <= 3 * 1'500'000);
  CHECK(memory.taken < 500);
}
