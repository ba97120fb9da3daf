// Creates and destroys many communicators, and checks that they leak no memory, no open file and no mapping. COMMUNICATORS
// sets the number of communicators per backend (default 100). Each communicator is used before it is destroyed. After every
// 25 communicators, a new world is opened.
//
//   warm up            libraries fill their caches
//   first half  ┐      memory may still grow a little
//   second half ┘      memory must grow by less than 64 KiB or 20 bytes per communicator, whichever is more; in both halves,
//                      by less than 1 MiB. By default, a leak of 1.3 KB per communicator is detected
#include <malloc.h>

#include <filesystem>

#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/sanitized.hpp"
#include "tests/tally.hpp"

namespace chorale::test {
namespace {

struct Held {
  std::int64_t bytes = 0, descriptors = 0, mappings = 0;
};

std::int64_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

// Counts the private memory, open files and mappings of this process. Before it counts, malloc_trim returns freed memory to
// the system.
Held held() {
  malloc_trim(0);
  Held now{0, entries_of("/proc/self/fd"), std::ssize(split(contents_of("/proc/self/maps").value_or(""), '\n'))};
  for (const std::string& line : split(contents_of("/proc/self/smaps_rollup").value_or(""), '\n'))  // "Private_Dirty: 52 kB"
    if (line.starts_with("Private_Dirty:") || line.starts_with("Private_Clean:"))
      now.bytes += 1024 * std::stoll(line.substr(line.find(':') + 1));
  return now;
}

// Creates `count` communicators and uses each of them. The groups alternate between half of the ranks and all ranks in
// reverse order.
void come_and_go(const std::string& backend, std::int64_t count) {
  constexpr std::int64_t of_a_world = 25;
  SystemClock clock;
  for (std::int64_t made = 0; made < count;) {
    Communicator all = open_world(backend, world(), clock);
    for (std::int64_t i = 0; i < of_a_world && made < count; ++i, ++made) {
      alive();
      const bool halves = made % 2 == 0;
      Communicator group = all.split(halves ? all.rank() % 2 : 0, halves ? 0 : -all.rank());
      float x[5] = {1, 1, 1, 1, 1};
      group.all_reduce({x, 5, DType::f32});
      if (x[4] != static_cast<float>(group.size())) throw std::runtime_error("a sum is wrong");
    }
  }
}

}  // namespace

TEST_CASE("communicators that come and go leave no memory, no file and no mapping", "[spmd]") {
  if (world().size() != 2 && world().size() != 4) return;  // two numbers of ranks are enough
  const std::int64_t half = std::max<std::int64_t>(1, std::stoll(environment("COMMUNICATORS", "100")) / 2);
  SystemClock clock;
  std::vector<std::string> names{"auto"};
  for (const Backend& backend : all_backends())
    if (joins_all(backend)) names.emplace_back(backend.name);
  const auto held_after = [&](const std::string& backend, std::int64_t count) {
    come_and_go(backend, count);
    mpi::sleep_until_all(world().world(), clock);
    return held();
  };
  const std::int64_t most_of_half = std::max<std::int64_t>(64 << 10, 20 * half);
  Tally tally(world().rank() == 0);
  for (const std::string& backend : names) {
    const Held before = held_after(backend, 50), middle = held_after(backend, half), after = held_after(backend, half);
    const auto grown = [&](auto member) {
      return fmt::format("{} more, then {}", middle.*member - before.*member, after.*member - middle.*member);
    };
    INFO(fmt::format("{}, two times {} communicators; bytes: {}; descriptors: {}; mappings: {}", backend, half,
                     grown(&Held::bytes), grown(&Held::descriptors), grown(&Held::mappings)));
    const bool no_bytes = sanitized || (after.bytes - middle.bytes < most_of_half && after.bytes - before.bytes < 1 << 20);
    const bool no_descriptor = after.descriptors <= before.descriptors;
    const bool no_mapping = after.mappings < middle.mappings + 10;  // approximate: the C library can split its own mappings
    tally.tried += 2 * half;
    tally.failed += !ranks_that_failed(!no_bytes || !no_descriptor || !no_mapping).empty();
    REQUIRE_ALL(no_bytes);
    REQUIRE_ALL(no_descriptor);
    REQUIRE_ALL(no_mapping);
  }
}

}  // namespace chorale::test
