#include "collectives/schedule/hierarchy.hpp"

#include <algorithm>

#include "collectives/schedule/phases.hpp"

namespace chorale {
namespace {

Range in(const Range& vector, const Range& part) { return {vector.place, vector.first + part.first, part.count}; }

}  // namespace

Hierarchy::Hierarchy(Schedule& s, Range whole)
    : s_(s),
      lanes_(s.problem()),
      hosts_(has_root(s.problem().what) ? lanes_.hosts_beyond(s.problem().root) : lanes_.all_hosts()),
      pieces_(hosts_.size()),
      whole_(whole),
      summed_(whole) {
  const Problem& p = s.problem();
  if (p.takes_block() || p.gives_block())
    own_blocks(p.blocks);
  else
    own_evenly(p.blocks.total());
}

void Hierarchy::own_evenly(std::int64_t count) {
  const Blocks vector = Blocks::even(count, lanes_.count());
  for (int lane = 0; lane < lanes_.count(); ++lane) {
    const Blocks cut = Blocks::even(vector.count(lane), static_cast<int>(hosts_.size()));
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const int piece = static_cast<int>(i);
      pieces_[i].push_back(output(vector.first(lane) + cut.first(piece), cut.count(piece)));
    }
  }
}

void Hierarchy::own_blocks(const Blocks& blocks) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int host = hosts_[i];
    for (int local = 0; local < std::ssize(lanes_.ranks(host)); ++local) {
      const int rank = lanes_.ranks(host)[static_cast<std::size_t>(local)];
      const int owned = lanes_.first(host, local + 1) - lanes_.first(host, local);
      const Blocks cut = Blocks::even(blocks.count(rank), owned);
      for (int piece = 0; piece < owned; ++piece)
        pieces_[i].push_back(output(blocks.first(rank) + cut.first(piece), cut.count(piece)));
    }
  }
}

std::vector<int> Hierarchy::neighbors() const {
  return others_from(lanes_.local(), static_cast<int>(lanes_.ranks(lanes_.host()).size()));
}

std::vector<Range> Hierarchy::owned_by(int local) const {
  std::vector<Range> pieces, parts;
  for (const std::vector<Range>& of_host : pieces_)
    for (int lane = lanes_.first(lanes_.host(), local); lane < lanes_.first(lanes_.host(), local + 1); ++lane)
      if (const Range& piece = of_host[static_cast<std::size_t>(lane)]; piece.count > 0) pieces.push_back(piece);
  std::ranges::sort(pieces, {}, &Range::first);
  for (const Range& piece : pieces) append_merged(parts, piece);
  return parts;
}

// If a host has only one rank, the rank's addends already are the host's sums.
void Hierarchy::sum_within(Range from) {
  std::vector<int> others;
  s_.round();
  for (const int local : neighbors()) {
    others.push_back(rank_of(local));
    for (const Range& part : owned_by(local)) s_.send(rank_of(local), in(from, part));
  }
  if (others.empty()) summed_ = from;
  for (const Range& part : owned_by(lanes_.local()))
    if (!others.empty()) s_.recv_reduce(others, in(from, part), in(whole_, part));
}

template <class Phase>
void Hierarchy::between(Range from, const Phase& phase) {
  const auto mine = std::ranges::find(hosts_, lanes_.host());
  if (mine == hosts_.end()) return;
  const int index = static_cast<int>(mine - hosts_.begin()), size = static_cast<int>(hosts_.size());
  const bool in_place = same_start(s_.problem(), from, whole_);
  for (int lane = lanes_.first(lanes_.host(), lanes_.local()); lane < lanes_.first(lanes_.host(), lanes_.local() + 1);
       ++lane) {
    std::vector<int> owners;
    for (const int host : hosts_) owners.push_back(lanes_.owner(host, lane));
    const auto piece = [&](int host) { return pieces_[static_cast<std::size_t>(host)][static_cast<std::size_t>(lane)]; };
    Schedule part(Problem{Collective::all_reduce, index, size, 0, {}, in_place});
    phase(
        part, [&](int host) { return in(input(0, 0), piece(host)); },
        [&](int host) { return in(output(0, 0), piece(host)); });
    s_.append(part, owners, from, whole_);
  }
}

void Hierarchy::sum_between() {
  between(summed_, [](Schedule& part, const Home& own, const Home& home) { circulant_reduce_scatter(part, own, home); });
}

void Hierarchy::gather_between() {
  between(whole_, [](Schedule& part, const Home&, const Home& home) { circulant_all_gather(part, home); });
}

void Hierarchy::gather_within(int except) {
  std::vector<int> receivers;
  for (const int local : neighbors())
    if (rank_of(local) != except) receivers.push_back(rank_of(local));
  s_.round();
  if (!receivers.empty())
    for (const Range& part : owned_by(lanes_.local())) s_.send(receivers, in(whole_, part));
  if (rank() == except) return;
  for (const int local : neighbors())
    for (const Range& part : owned_by(local)) s_.recv(rank_of(local), in(whole_, part));
}

void Hierarchy::scatter_within(int root) { move_lanes(root, true); }
void Hierarchy::gather_at(int root) { move_lanes(root, false); }

void Hierarchy::move_lanes(int root, bool root_sends) {
  if (lanes_.host() != lanes_.host_of(root)) return;
  const auto move = [&](bool sends, int peer, int owner) {
    for (const Range& part : owned_by(owner))
      if (sends)
        s_.send(peer, in(whole_, part));
      else
        s_.recv(peer, in(whole_, part));
  };
  s_.round();
  if (rank() != root) return move(!root_sends, root, lanes_.local());
  for (const int local : neighbors()) move(root_sends, rank_of(local), local);
}

template <class Visit>
void Hierarchy::each_piece_beyond(int root, const Visit& visit) const {
  const int near = lanes_.host_of(root);
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    for (int lane = 0; lane < lanes_.count(); ++lane)
      if (hosts_[i] != near)
        visit(lanes_.owner(near, lane), lanes_.owner(hosts_[i], lane), pieces_[i][static_cast<std::size_t>(lane)]);
}

void Hierarchy::send_pieces(int root) {
  s_.round();
  each_piece_beyond(root, [&](int near, int owner, const Range& piece) {
    if (rank() == near) s_.send(owner, in(whole_, piece));
    if (rank() == owner) s_.recv(near, in(whole_, piece));
  });
}

void Hierarchy::collect_pieces(int root) {
  s_.round();
  each_piece_beyond(root, [&](int near, int owner, const Range& piece) {
    if (rank() == owner) s_.send(near, in(whole_, piece));
    if (rank() == near) s_.recv_reduce(owner, in(summed_, piece), in(whole_, piece));
  });
}

}  // namespace chorale
