#include "src/memory/arena.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/backends/mapped/flag_page.hpp"
#include "src/base/error.hpp"
#include "src/memory/pool.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {
constexpr std::int64_t megabyte = 1 << 20;

// The number of nonzero bytes in the arena. The tests write only nonzero bytes, and returned pages contain zeros when they
// are read.
std::int64_t stored(const Arena& arena) {
  const Mapping& all = arena.mapping();
  return all.bytes() - std::count(all.start(), all.start() + all.bytes(), std::byte{0});
}

}  // namespace

TEST_CASE("an arena lends aligned pieces, takes them back, and merges free ranges") {
  Arena arena(8 * megabyte);
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) {
    pieces.push_back(arena.take(megabyte));
    REQUIRE(pieces.back() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(pieces.back()) % 128 == 0);
    std::memset(pieces.back(), i, megabyte);
  }
  CHECK(arena.take(1) == nullptr);
  CHECK(errno == ENOMEM);
  for (const int i : {1, 3, 2, 0, 7, 5, 6, 4}) arena.give_back(pieces[static_cast<std::size_t>(i)], megabyte);
  void* const whole = arena.take(8 * megabyte);  // succeeds only if all neighboring free ranges were merged
  CHECK(whole == arena.mapping().start());
}

TEST_CASE("pieces of zero bytes have distinct addresses") {
  Arena arena(megabyte);
  void *const a = arena.take(0), *const b = arena.take(0);
  CHECK(a != b);
  arena.give_back(a, 0);
  CHECK(arena.take(0) == a);
}

TEST_CASE("large pieces start on a huge page, and their memory goes back to the kernel") {
  Arena arena(16 * megabyte);
  void* const small = arena.take(100);
  void* const large = arena.take(4 * megabyte);
  CHECK(arena.offset_of(large) % (2 * megabyte) == 0);
  std::memset(large, 7, 4 * megabyte);
  arena.give_back(large, 4 * megabyte);
  CHECK(*static_cast<char*>(arena.take(4 * megabyte)) == 0);  // zero, because the pages are new
  arena.give_back(small, 100);
}

TEST_CASE("a peer can still read a flag page that its owner has given back") {
  using namespace mapped;
  int members = 2;
  while (flag_page_bytes(members + 1) <= Arena::kept_bytes) ++members;
  CHECK(members > 10'000);
  Arena arena(8 * megabyte);
  const Mapping peers = Arena::of_process(getpid(), arena.file(), 8 * megabyte);
  for (const int size : {2, members}) {
    const auto bytes = flag_page_bytes(size);
    void* const page = arena.take(bytes);
    std::memset(page, 7, static_cast<std::size_t>(bytes));
    arena.give_back(page, bytes);
    const std::byte* const seen = peers.start() + arena.offset_of(page);
    CHECK(std::count(seen, seen + bytes, std::byte{7}) == bytes);
  }
}

TEST_CASE("every piece that starts on a huge page returns its memory, also the smallest and those of odd lengths") {
  Arena arena(16 * megabyte);
  void* const small = arena.take(100);
  for (const std::int64_t bytes : {2 * megabyte - 1, 2 * megabyte, 2 * megabyte + 8192, 4 * megabyte - 128}) {
    INFO(bytes << " bytes");
    auto* const piece = static_cast<char*>(arena.take(bytes));
    REQUIRE(arena.offset_of(piece) == 2 * megabyte);
    std::memset(piece, 7, static_cast<std::size_t>(bytes));
    arena.give_back(piece, bytes);
    auto* const again = static_cast<char*>(arena.take(bytes));
    CHECK(again == piece);
    CHECK(std::count(again, again + bytes / 4096 * 4096, 0) == bytes / 4096 * 4096);
    arena.give_back(again, bytes);
  }
  arena.give_back(small, 100);
}

TEST_CASE("smaller pieces return their pages if asked to, and leave those of their neighbors") {
  constexpr std::int64_t bytes = 300'000, count = 12;  // most blocks begin and end within a page
  Arena arena(8 * megabyte);
  std::vector<char*> pieces;
  for (int i = 0; i < count; ++i) {
    pieces.push_back(static_cast<char*>(arena.take(bytes)));
    std::memset(pieces.back(), 1 + i, bytes);
  }
  const auto give_back = [&](int i) {
    arena.return_pages(pieces[static_cast<std::size_t>(i)], bytes);
    arena.give_back(pieces[static_cast<std::size_t>(i)], bytes);
    pieces[static_cast<std::size_t>(i)] = nullptr;
  };
  for (int i = 1; i < count; i += 2) give_back(i);
  for (int i = 0; i < count; i += 2) {
    const char* const kept = pieces[static_cast<std::size_t>(i)];
    CHECK(std::count(kept, kept + bytes, 1 + i) == bytes);
  }
  CHECK(stored(arena) <= count / 2 * (bytes + 2 * 4096));
  for (int i = 0; i < count; i += 2) give_back(i);
  CHECK(stored(arena) <= count * 2 * 4096);  // the pages that blocks share with their neighbors
}

TEST_CASE("a limited pool's arena stores no more than the limit") {
  Arena arena(64 * megabyte);
  Pool pool(arena);
  pool.hold_at_most(16 * megabyte);
  const auto fill = [&](std::int64_t bytes, int count) {
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(std::memset(pool.take(bytes), 1, static_cast<std::size_t>(bytes)));
    CHECK(stored(arena) <= 16 * megabyte);
    for (void* const block : blocks) pool.give_back(block, bytes);
  };
  fill(786'432, 20);       // typical sizes of activations
  fill(15 * megabyte, 1);  // the size of an embedding's gradient
  fill(3 * megabyte / 2, 10);
}

TEST_CASE("another mapping of an arena shows the same memory") {
  Arena arena(4 * megabyte);
  const Mapping view = Arena::of_process(getpid(), arena.file(), arena.mapping().bytes());
  auto* const place = static_cast<char*>(arena.take(64));
  std::strcpy(place, "seen");
  CHECK(std::strcmp(reinterpret_cast<char*>(view.start() + arena.offset_of(place)), "seen") == 0);
  CHECK(view.holds(view.start() + 5));
  CHECK_FALSE(view.holds(place));
}

TEST_CASE("the error for an arena that cannot be opened names its process and a remedy") {
  CHECK_THROWS_WITH(Arena::of_process(1 << 30, 3, megabyte), says("cannot be opened") && says("a backend other than shm"));
}
