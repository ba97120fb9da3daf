#include "collectives/schedule/hierarchy.hpp"

#include <algorithm>
#include <utility>

#include "collectives/schedule/phases.hpp"

namespace chorale {
namespace {

Range in(const Range& vector, const Range& part) { return {vector.place, vector.first + part.first, part.count}; }

}  // namespace

LanePieces even_pieces(const Lanes& lanes, std::int64_t count, const std::vector<int>& hosts) {
  LanePieces pieces{hosts, std::vector<std::vector<Range>>(hosts.size())};
  const Blocks vector = Blocks::even(count, lanes.count());
  for (int lane = 0; lane < lanes.count(); ++lane) {
    const Blocks cut = Blocks::even(vector.count(lane), static_cast<int>(hosts.size()));
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const int piece = static_cast<int>(i);
      pieces.of[i].push_back(output(vector.first(lane) + cut.first(piece), cut.count(piece)));
    }
  }
  return pieces;
}

LanePieces pieces_of_blocks(const Lanes& lanes, const Blocks& blocks) {
  LanePieces pieces;
  for (int host = 0; host < lanes.hosts(); ++host) {
    pieces.hosts.push_back(host);
    std::vector<Range>& of_host = pieces.of.emplace_back();
    for (int local = 0; local < std::ssize(lanes.ranks(host)); ++local) {
      const int rank = lanes.ranks(host)[static_cast<std::size_t>(local)];
      const int owned = lanes.first(host, local + 1) - lanes.first(host, local);
      const Blocks cut = Blocks::even(blocks.count(rank), owned);
      for (int piece = 0; piece < owned; ++piece)
        of_host.push_back(output(blocks.first(rank) + cut.first(piece), cut.count(piece)));
    }
  }
  return pieces;
}

Hierarchy::Hierarchy(Schedule& s, const Lanes& lanes, LanePieces pieces, Range whole)
    : s_(s), lanes_(lanes), pieces_(std::move(pieces)), whole_(whole), summed_(whole) {}

// Each rank's list starts with a different neighbor.
std::vector<int> Hierarchy::neighbors() const {
  const int here = static_cast<int>(lanes_.ranks(lanes_.host()).size());
  std::vector<int> others;
  for (int k = 1; k < here; ++k) others.push_back(modulo(lanes_.local() + k, here));
  return others;
}

// Adjacent segments are merged into one range, so that they are sent in one message.
std::vector<Range> Hierarchy::owned_by(int local) const {
  std::vector<Range> pieces, parts;
  for (const std::vector<Range>& of_host : pieces_.of)
    for (int lane = lanes_.first(lanes_.host(), local); lane < lanes_.first(lanes_.host(), local + 1); ++lane)
      if (const Range& piece = of_host[static_cast<std::size_t>(lane)]; piece.count > 0) pieces.push_back(piece);
  std::ranges::sort(pieces, {}, &Range::first);
  for (const Range& piece : pieces)
    if (!parts.empty() && parts.back().first + parts.back().count == piece.first)
      parts.back().count += piece.count;
    else
      parts.push_back(piece);
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
  const auto mine = std::ranges::find(pieces_.hosts, lanes_.host());
  if (mine == pieces_.hosts.end()) return;
  const int index = static_cast<int>(mine - pieces_.hosts.begin()), size = static_cast<int>(pieces_.hosts.size());
  const bool in_place = same_start(s_.problem(), from, whole_);
  for (int lane = lanes_.first(lanes_.host(), lanes_.local()); lane < lanes_.first(lanes_.host(), lanes_.local() + 1);
       ++lane) {
    std::vector<int> owners;
    for (const int host : pieces_.hosts) owners.push_back(lanes_.owner(host, lane));
    const auto piece = [&](int host) { return pieces_.of[static_cast<std::size_t>(host)][static_cast<std::size_t>(lane)]; };
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
  for (std::size_t i = 0; i < pieces_.hosts.size(); ++i)
    for (int lane = 0; lane < lanes_.count(); ++lane)
      if (pieces_.hosts[i] != near)
        visit(lanes_.owner(near, lane), lanes_.owner(pieces_.hosts[i], lane), pieces_.of[i][static_cast<std::size_t>(lane)]);
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
