// Communicators that come and go leave nothing behind: no memory, no open file, no mapping. COMMUNICATORS sets how many are
// made on each backend (100; each is used, and each hundred in a new world).
#include <malloc.h>

#include <filesystem>

#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "tests/collectives/worlds.hpp"

namespace chorale::test {
namespace {

struct Held {
  std::int64_t bytes = 0, descriptors = 0, mappings = 0;
};

std::int64_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

// Memory that only this process has. What the C library keeps of freed memory is returned first.
Held held() {
  malloc_trim(0);
  Held now{0, entries_of("/proc/self/fd"), std::ssize(split(contents_of("/proc/self/maps").value_or(""), '\n'))};
  for (const std::string& line : split(contents_of("/proc/self/smaps_rollup").value_or(""), '\n'))  // "Anonymous:  52 kB"
    if (line.starts_with("Private_Dirty:") || line.starts_with("Private_Clean:"))
      now.bytes += 1024 * std::stoll(line.substr(line.find(':') + 1));
  return now;
}

// Makes this many communicators, in two ways in turn, and uses each.
void come_and_go(const std::string& backend, std::int64_t count) {
  constexpr std::int64_t of_a_world = 100;
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
  const std::int64_t count = std::stoll(environment("COMMUNICATORS", "100"));
  constexpr std::int64_t most_bytes = 1 << 20;
  SystemClock clock;
  std::vector<std::string> names{"auto"};
  for (const Backend& backend : all_backends())
    if (joins_all(backend)) names.emplace_back(backend.name);
  for (const std::string& backend : names) {
    come_and_go(backend, 220);  // until the libraries below have what they keep
    mpi::sleep_until_all(world().world(), clock);
    const Held before = held();
    come_and_go(backend, count);
    mpi::sleep_until_all(world().world(), clock);
    const Held after = held();
    INFO(backend << ": " << after.bytes - before.bytes << " bytes more in " << count << " communicators, "
                 << after.descriptors - before.descriptors << " descriptors, " << after.mappings - before.mappings
                 << " mappings");
    REQUIRE_ALL(after.bytes - before.bytes < most_bytes);
    REQUIRE_ALL(after.descriptors <= before.descriptors);
    REQUIRE_ALL(after.mappings < before.mappings + 20);  // the C library may split its own
  }
}

}  // namespace chorale::test
