#include "experiments/bench/ceiling.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/backends/mapped/transport.hpp"
#include "experiments/common/each.hpp"
#include "src/base/index.hpp"

namespace chorale::bench {

Ceiling::Ceiling(const Communicator& group, const Buffers& buffers, std::vector<int> ranks)
    : buffers_(buffers), ranks_(std::move(ranks)), rank_(group.rank()) {
  auto* transport = dynamic_cast<mapped::MappedTransport*>(&group.transport());
  if (!transport) return;
  reach_ = &transport->reach();
  const auto mine = static_cast<std::int64_t>(reach_->locate(buffers.input(0)));
  const std::vector<std::int64_t> all = transport->exchange(mine);
  inputs_ = each(ranks_, [&](int rank) { return static_cast<mapped::Location>(all[index(rank)]); });
  if (!all_mapped() && !reach_->has_kernel_copies()) inputs_.clear();
}

bool Ceiling::all_mapped() const {
  return std::ranges::all_of(inputs_, [](mapped::Location input) { return input & mapped::is_mapped; });
}

mapped::Location Ceiling::location(const Spot& spot) const {
  return inputs_[index(spot.rank)] + static_cast<mapped::Location>(spot.offset);
}

bool Ceiling::exists(const BenchCase& row) const {
  const bool swaps = row.what == Collective::all_to_all && row.in_place;
  return row.ranks > 1 && !inputs_.empty() && row.count > 0 && row.what != Collective::barrier && !swaps;
}

// On every rank, the i-th input has the same offset from the first input.
Ceiling::Spot Ceiling::input(int rank, std::int64_t call) const {
  return {rank, static_cast<std::byte*>(buffers_.input(call)) - static_cast<std::byte*>(buffers_.input(0))};
}

Ceiling::Spot Ceiling::output(const BenchCase& row, int rank, std::int64_t call) const {
  const auto from_input = static_cast<std::byte*>(buffers_.output(0)) - static_cast<std::byte*>(buffers_.input(0));
  return {rank, input(rank, call).offset + (row.in_place ? 0 : from_input)};
}

std::byte* Ceiling::mapped(const Spot& spot) const {
  void* const first =
      spot.rank == rank_ ? buffers_.input(0) : reach_->map(ranks_[index(spot.rank)], inputs_[index(spot.rank)]);
  return first ? static_cast<std::byte*>(first) + spot.offset : nullptr;
}

void Ceiling::copy(const Spot& into, const Spot& from, std::int64_t bytes) const {
  std::byte* const to = mapped(into);
  const std::byte* const source = mapped(from);
  if (to == source) return;
  if (to && source)
    std::memcpy(to, source, index(bytes));
  else if (to)
    reach_->read(ranks_[index(from.rank)], location(from), to, bytes);
  else
    reach_->write(ranks_[index(into.rank)], location(into), source, bytes);
}

// Sums in one pass if all data are mapped, and otherwise in segments, as a MappedOperation does.
void Ceiling::sum(const BenchCase& row, std::int64_t call) const {
  constexpr std::int64_t segment = 128 << 10;
  const Blocks blocks = Blocks::even(row.count, row.ranks);
  const std::int64_t home = blocks.first(rank_) * size_of(row.dtype), bytes = blocks.count(rank_) * size_of(row.dtype);
  std::vector<Spot> from, into;
  for (int r = 0; r < row.ranks; ++r) from.push_back(input(r, call).at(home));
  if (row.what == Collective::reduce_scatter)
    into.push_back(output(row, rank_, call).at(row.in_place ? home : 0));
  else if (row.what == Collective::reduce)
    into.push_back(output(row, row.root, call).at(home));
  else
    for (int r = 0; r < row.ranks; ++r) into.push_back(output(row, r, call).at(home));
  const bool in_segments = !all_mapped();
  if (in_segments) room_.resize(index(segment) * (from.size() + 1));
  const Redop op = row.op == Redop::avg ? Redop::sum : row.op;
  for (std::int64_t first = 0; first < bytes; first += in_segments ? segment : bytes) {
    const std::int64_t here = in_segments ? std::min(segment, bytes - first) : bytes;
    std::vector<const void*> sources;
    std::vector<void*> targets;
    for (std::size_t r = 0; r < from.size(); ++r) {
      const Spot addend = from[r].at(first);
      std::byte* source = mapped(addend);
      if (!source) {
        source = room_.data() + r * index(segment);
        reach_->read(ranks_[index(addend.rank)], location(addend), source, here);
      }
      sources.push_back(source);
    }
    for (const Spot& target : into)
      if (std::byte* const place = mapped(target.at(first))) targets.push_back(place);
    if (targets.empty()) targets.push_back(room_.data() + from.size() * index(segment));
    reduce(op, row.dtype, std::span<void* const>(targets), std::span<const void* const>(sources), here / size_of(row.dtype));
    for (const Spot& target : into)
      if (!mapped(target)) reach_->write(ranks_[index(target.rank)], location(target.at(first)), targets[0], here);
  }
}

void Ceiling::run(const BenchCase& row, std::int64_t call) const {
  const std::int64_t bytes = row.bytes(), block = bytes / row.ranks, home = rank_ * block;
  switch (row.what) {
    case Collective::broadcast:
      if (rank_ != row.root) copy(input(rank_, call), input(row.root, call), bytes);
      return;
    case Collective::scatter: return copy(output(row, rank_, call), input(row.root, call).at(home), block);
    case Collective::gather: return copy(output(row, row.root, call).at(home), input(rank_, call), block);
    case Collective::all_gather:
      for (int r = 0; r < row.ranks; ++r)
        copy(output(row, rank_, call).at(r * block), input(r, call).at(row.in_place ? r * block : 0), block);
      return;
    case Collective::all_to_all:
      for (int r = 0; r < row.ranks; ++r) copy(output(row, rank_, call).at(r * block), input(r, call).at(home), block);
      return;
    default: return sum(row, call);
  }
}

}  // namespace chorale::bench
