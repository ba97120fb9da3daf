// Tests memory that is planned from the requests of the first step. In later steps, each block gets the same offset in one
// contiguous arena. Requests that do not match the plan are served by the inner memory.
#include "src/memory/planned_arena.hpp"

#include "src/memory/pool.hpp"
#include "tests/catch.hpp"
#include "tests/memory/counted.hpp"

using namespace chorale;
using chorale::test::Counted;

namespace {

struct Step {
  std::vector<std::byte*> places;
};

// Requests the blocks a, b and c and returns b. Then requests d, which fits into the memory of b, and returns all blocks.
Step step(PlannedArena& arena, std::int64_t d = 500) {
  Step made;
  arena.begin_step();
  const auto take = [&](std::int64_t bytes) {
    made.places.push_back(static_cast<std::byte*>(arena.take(bytes)));
    REQUIRE(made.places.back() != nullptr);
  };
  take(1000);
  take(512);
  take(2000);
  arena.give_back(made.places[1], 512);
  take(d);
  arena.give_back(made.places[3], d);
  arena.give_back(made.places[0], 1000);
  arena.give_back(made.places[2], 2000);
  arena.end_step();
  return made;
}

}  // namespace

TEST_CASE("from the second step on, blocks lie in one piece, always at the same places") {
  Counted memory;
  {
    PlannedArena arena(memory);
    step(arena);
    CHECK((memory.taken == 4 + 1 && memory.held == 1024 + 512 + 2048));  // d uses the memory of b
    const Step second = step(arena), third = step(arena);
    CHECK(memory.taken == 5);
    CHECK(second.places == third.places);
    CHECK(second.places[3] == second.places[1]);
    const PlannedArena::Report report = arena.report();
    CHECK((report.bytes == report.least && report.served == 8 && report.unplanned == 0));
    CHECK((report.free == report.bytes && report.largest_free == report.bytes));  // after a step, the complete arena is free
  }
  CHECK(memory.held == 0);
}

TEST_CASE("what does not match the plan is served elsewhere and counted") {
  Counted memory;
  PlannedArena arena(memory);
  step(arena);
  step(arena, 100);  // a smaller d fits
  CHECK(arena.report().unplanned == 0);
  step(arena, 513);
  CHECK((arena.report().unplanned == 1 && memory.taken == 6 && memory.held == arena.report().bytes));
  arena.begin_step();  // b is not returned before d is requested, so d cannot use the memory of b
  void* const places[] = {arena.take(1000), arena.take(512), arena.take(2000), arena.take(500), arena.take(8)};
  CHECK((arena.report().unplanned == 3 && memory.held == arena.report().bytes + 508));
  CHECK(arena.report().largest_free < arena.report().bytes);
  const std::int64_t bytes[] = {1000, 512, 2000, 500, 8};
  for (std::size_t i = 0; i < std::size(bytes); ++i) arena.give_back(places[i], bytes[i]);
  arena.end_step();
  CHECK((arena.report().free == arena.report().bytes && memory.held == arena.report().bytes));
}

TEST_CASE("blocks that outlive the first step, and requests between steps, are served elsewhere") {
  Counted memory;
  PlannedArena arena(memory);
  void* const before = arena.take(300);
  arena.begin_step();
  void *const stays = arena.take(700), *const nothing = arena.take(0), *const comes_and_goes = arena.take(100);
  arena.give_back(comes_and_goes, 100);
  arena.give_back(nothing, 0);
  arena.give_back(before, 300);
  arena.end_step();
  void* const between = arena.take(100);
  CHECK(memory.held == 700 + 128 + 100);
  arena.begin_step();
  void* const again = arena.take(700);
  CHECK(memory.held == 700 + 128 + 100 + 700);
  arena.give_back(again, 700);
  arena.end_step();
  CHECK(arena.report().unplanned == 0);
  arena.give_back(between, 100);
  arena.give_back(stays, 700);
  CHECK(memory.held == 128);
}

TEST_CASE("blocks that the pool behind keeps from the first step are returned before the piece is taken") {
  Counted memory;
  Pool pool(memory);
  PlannedArena arena(pool);
  step(arena);
  CHECK((pool.kept().bytes == 0 && memory.held == arena.report().bytes));
  CHECK((arena.kept().bytes == arena.report().bytes && arena.kept().largest == arena.report().bytes));
}

TEST_CASE("no room for the piece is an error") {
  Counted memory(3560);  // blocks of 1000, 512 and 2000 bytes fit only without rounding to multiples of 64
  PlannedArena arena(memory);
  CHECK_THROWS_WITH(step(arena), says("no room for contiguous memory") && says("--contiguous-memory"));
}
