#include "collectives/backends/near/post.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "collectives/backends/mapped/flag_page.hpp"
#include "src/base/polling_barrier.hpp"

namespace chorale::near {

using mapped::load_acquire;
using mapped::store_release;

Post::Post(const mpi::Runtime& runtime, const Topology& topology)
    : host_(runtime, topology.host_of[static_cast<std::size_t>(runtime.rank())]), reach_(mapped::open_shared_reach(host_)) {
  const int host = topology.host_of[static_cast<std::size_t>(runtime.rank())];
  int next = 0;
  for (const int other : topology.host_of) locals_.push_back(other == host ? next++ : -1);

  const auto ranks = static_cast<std::size_t>(host_.size());
  outboxes_ = reach_->memory().allocate(static_cast<std::int64_t>(ranks * sizeof(Outbox)), Category::comm);
  auto* const mine = static_cast<Outbox*>(outboxes_.data());
  for (std::size_t to = 0; to < ranks; ++to) new (mine + to) Outbox;
  const auto starts = mpi::all_gather(host_.world(), static_cast<std::int64_t>(reach_->locate(mine)));
  peers_.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    auto* const theirs = static_cast<Outbox*>(reach_->map(static_cast<int>(r), static_cast<mapped::Location>(starts[r])));
    peers_[r].mine = mine + r;
    peers_[r].theirs = theirs + host_.rank();
  }
}

bool Post::has_room(const Peer& peer) const { return peer.sent - load_acquire(peer.theirs->seen) < ring_notices; }

// Copies only the bytes of the message, not the complete ring entry.
void Post::write(Peer& peer, const Notice& notice) {
  Notice& place = peer.mine->ring[peer.sent % ring_notices];
  const std::size_t head = offsetof(Notice, group);
  const auto carried = static_cast<std::size_t>(notice.bytes <= carried_bytes ? notice.bytes : 0);
  std::memcpy(reinterpret_cast<std::byte*>(&place) + head, reinterpret_cast<const std::byte*>(&notice) + head,
              offsetof(Notice, carried) - head + carried);
  store_release(place.number, ++peer.sent);
}

// Allocates memory only if the ring is full.
std::uint64_t Post::send(int to, const Notice& notice) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.waiting.empty() && has_room(peer)) {
    write(peer, notice);
    return peer.sent;
  }
  peer.waiting.push_back(notice);
  return peer.sent + peer.waiting.size();
}

void Post::receive(Incoming& incoming) {
  incoming.over = false;
  const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.from == incoming.from && kept.notice.group == incoming.group && kept.notice.sequence == incoming.sequence;
  });
  if (found == kept_.end()) {
    receives_.push_back(&incoming);
    return;
  }
  take(found->from, found->notice, incoming);
  kept_.erase(found);
}

void Post::cancel(const Incoming& incoming) noexcept { std::erase(receives_, &incoming); }

void Post::progress() {
  for (std::size_t from = 0; from < peers_.size(); ++from) {
    Peer& peer = peers_[from];
    for (; !peer.waiting.empty() && has_room(peer); peer.waiting.pop_front()) write(peer, peer.waiting.front());
    const std::uint64_t before = peer.taken;
    for (;;) {
      const Notice& notice = peer.theirs->ring[peer.taken % ring_notices];
      if (load_acquire(notice.number) != peer.taken + 1) break;
      const auto found = std::ranges::find_if(receives_, [&](const Incoming* incoming) {
        return incoming->from == static_cast<int>(from) && incoming->group == notice.group &&
               incoming->sequence == notice.sequence;
      });
      ++peer.taken;
      if (found == receives_.end()) {
        kept_.push_back({static_cast<int>(from), notice});
        continue;
      }
      Incoming& incoming = **found;
      receives_.erase(found);
      take(static_cast<int>(from), notice, incoming);
    }
    if (peer.taken != before) store_release(peer.mine->seen, peer.taken);
  }
}

void Post::take(int from, const Notice& notice, Incoming& incoming) {
  incoming.history = notice.history;
  incoming.came = notice.bytes;
  const bool is_carried = notice.bytes <= carried_bytes;
  if (notice.bytes == incoming.bytes && notice.bytes > 0) {
    const void* const mapped = is_carried ? notice.carried : reach_->map(from, notice.data);
    if (mapped)
      std::memcpy(incoming.place, mapped, static_cast<std::size_t>(notice.bytes));
    else
      reach_->read(from, notice.data, incoming.place, notice.bytes);
  }
  if (!is_carried) store_release(*static_cast<std::uint64_t*>(reach_->map(from, notice.taken)), notice.run);
  incoming.over = true;
}

}  // namespace chorale::near
