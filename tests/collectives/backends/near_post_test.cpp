// Tests messages between ranks of one host through shared memory. The sender announces each message by a ring entry (a
// `Notice`) in the receiver's ring buffer. The ring entry of a small message contains the data. The receiver reads the data
// of a large message from the sender's memory. The tests send more messages than the ring buffer can hold, and receive them
// in a different order.
#include "collectives/backends/near/post.hpp"

#include <cstring>

#include "collectives/backends/mapped/flag_page.hpp"
#include "src/base/polling_barrier.hpp"
#include "tests/spmd.hpp"

using namespace chorale;
using chorale::test::world;

namespace {

struct Sent {
  Buffer data, taken;
};

// Sends a message of `bytes` bytes, all equal to `fill`, to another rank of this host. The caller must keep the returned
// object until is_taken() is true for this object.
Sent send(near::Post& post, int to, std::uint64_t sequence, std::int64_t bytes, char fill) {
  Allocator& memory = post.reach().memory();
  Sent sent{memory.allocate(bytes, Category::comm), memory.allocate(8, Category::comm)};
  std::memset(sent.data.data(), fill, static_cast<std::size_t>(bytes));
  *static_cast<std::uint64_t*>(sent.taken.data()) = 0;
  near::Notice notice;
  notice.group = 7;
  notice.sequence = sequence;
  notice.bytes = bytes;
  notice.run = 1;
  notice.data = post.reach().locate(sent.data.data());
  notice.taken = post.reach().locate(sent.taken.data());
  if (bytes <= near::carried_bytes) std::memcpy(notice.carried, sent.data.data(), static_cast<std::size_t>(bytes));
  post.send(to, notice);
  return sent;
}
bool is_taken(const Sent& sent) { return mapped::load_acquire(*static_cast<const std::uint64_t*>(sent.taken.data())) == 1; }

// Receives a message and returns its bytes, or "length N" if N bytes arrived instead.
std::string received(near::Post& post, int from, std::uint64_t sequence, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '?');
  near::Incoming incoming{.from = from, .group = 7, .sequence = sequence, .place = text.data(), .bytes = bytes};
  post.receive(incoming);
  while (!incoming.over) post.progress();
  return incoming.came == bytes ? text : "length " + std::to_string(incoming.came);
}

}  // namespace

TEST_CASE("a host's messages arrive in any order of receives, also when the ring is full", "[spmd]") {
  near::Post post(world(), topology_of(world()));
  const int size = world().size(), next = (world().rank() + 1) % size, before = (world().rank() + size - 1) % size;
  constexpr int calls = 3 * near::ring_notices;
  const auto bytes_of = [](int call) { return call % 3 == 0 ? 5000 + call : call % (near::carried_bytes + 1); };
  const auto fill_of = [](int rank, int call) { return static_cast<char>('a' + (rank + call) % 26); };
  std::vector<Sent> all;
  for (int call = 0; call < calls; ++call)
    all.push_back(send(post, next, static_cast<std::uint64_t>(call), bytes_of(call), fill_of(world().rank(), call)));
  int wrong = 0;
  for (int call = calls - 1; call >= 0; --call)
    wrong += received(post, before, static_cast<std::uint64_t>(call), bytes_of(call)) !=
             std::string(static_cast<std::size_t>(bytes_of(call)), fill_of(before, call));
  for (int call = 0; call < calls; ++call)
    while (bytes_of(call) > near::carried_bytes && !is_taken(all[static_cast<std::size_t>(call)])) post.progress();
  mpi::polling_barrier(world().world(), [&] { post.progress(); });  // until all ranks have taken all messages
  REQUIRE_ALL(wrong == 0);
}

TEST_CASE("a host's messages of one call keep their order, and a wrong length is seen", "[spmd]") {
  near::Post post(world(), topology_of(world()));
  const int size = world().size(), next = (world().rank() + 1) % size, before = (world().rank() + size - 1) % size;
  std::vector<Sent> all;
  for (const char fill : {'x', 'y', 'z'}) all.push_back(send(post, next, 1, 3000, fill));
  all.push_back(send(post, next, 2, 10, 'w'));
  std::string order;
  for (int i = 0; i < 3; ++i) order += received(post, before, 1, 3000).substr(2998);
  REQUIRE_ALL(order == "xxyyzz");
  REQUIRE_ALL(received(post, before, 2, 11) == "length 10");
  for (int i = 0; i < 3; ++i)
    while (!is_taken(all[static_cast<std::size_t>(i)])) post.progress();
  mpi::polling_barrier(world().world(), [&] { post.progress(); });
}
