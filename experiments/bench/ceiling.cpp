#include "experiments/bench/ceiling.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/backends/mapped/transport.hpp"

namespace chorale::bench {

Ceiling::Ceiling(const Communicator& world, const Buffers& buffers) : buffers_(buffers), rank_(world.rank()) {
  auto* transport = dynamic_cast<mapped::MappedTransport*>(&world.transport());
  if (!transport) return;
  const mapped::Reach& reach = transport->reach();
  const auto mine = static_cast<std::int64_t>(reach.locate(buffers.input(0)));
  const std::vector<std::int64_t> all = transport->exchange(mine);
  for (int r = 0; r < world.size(); ++r) {
    const auto location = static_cast<mapped::Location>(all[static_cast<std::size_t>(r)]);
    void* place = r == rank_ ? buffers.input(0) : location & mapped::is_mapped ? reach.map(r, location) : nullptr;
    inputs_.push_back(static_cast<std::byte*>(place));
  }
  if (std::count(inputs_.begin(), inputs_.end(), nullptr)) inputs_.clear();
}

bool Ceiling::exists(const BenchCase& row) const {
  const bool swaps = row.what == Collective::all_to_all && row.in_place;
  return row.ranks > 1 && !inputs_.empty() && row.count > 0 && row.what != Collective::barrier && !swaps;
}

// On every rank, the i-th input has the same offset from the first input.
std::byte* Ceiling::input(int rank, std::int64_t call) const {
  const auto from_first = static_cast<std::byte*>(buffers_.input(call)) - static_cast<std::byte*>(buffers_.input(0));
  return inputs_[static_cast<std::size_t>(rank)] + from_first;
}

std::byte* Ceiling::output(const BenchCase& row, int rank, std::int64_t call) const {
  const auto from_input = static_cast<std::byte*>(buffers_.output(0)) - static_cast<std::byte*>(buffers_.input(0));
  return input(rank, call) + (row.in_place ? 0 : from_input);
}

void Ceiling::sum(const BenchCase& row, std::int64_t call) const {
  const Blocks blocks = Blocks::even(row.count, row.ranks);
  const std::int64_t home = blocks.first(rank_) * size_of(row.dtype);
  std::vector<const void*> from;
  std::vector<void*> into;
  for (int r = 0; r < row.ranks; ++r) from.push_back(input(r, call) + home);
  if (row.what == Collective::reduce_scatter)
    into.push_back(output(row, rank_, call) + (row.in_place ? home : 0));
  else if (row.what == Collective::reduce)
    into.push_back(output(row, row.root, call) + home);
  else
    for (int r = 0; r < row.ranks; ++r) into.push_back(output(row, r, call) + home);
  const Redop op = row.op == Redop::avg ? Redop::sum : row.op;
  reduce(op, row.dtype, std::span<void* const>(into), std::span<const void* const>(from), blocks.count(rank_));
}

void Ceiling::run(const BenchCase& row, std::int64_t call) const {
  const std::int64_t bytes = row.bytes(), block = bytes / row.ranks, home = rank_ * block;
  const auto copy = [](std::byte* into, const std::byte* from, std::int64_t length) {
    if (into != from) std::memcpy(into, from, static_cast<std::size_t>(length));
  };
  switch (row.what) {
    case Collective::broadcast:
      if (rank_ != row.root) copy(input(rank_, call), input(row.root, call), bytes);
      return;
    case Collective::scatter: return copy(output(row, rank_, call), input(row.root, call) + home, block);
    case Collective::gather: return copy(output(row, row.root, call) + home, input(rank_, call), block);
    case Collective::all_gather:
      for (int r = 0; r < row.ranks; ++r)
        copy(output(row, rank_, call) + r * block, input(r, call) + (row.in_place ? r * block : 0), block);
      return;
    case Collective::all_to_all:
      for (int r = 0; r < row.ranks; ++r) copy(output(row, rank_, call) + r * block, input(r, call) + home, block);
      return;
    default: return sum(row, call);
  }
}

}  // namespace chorale::bench
