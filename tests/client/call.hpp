// One random collective call on one rank. All ranks of the group draw the same parameters. Guard bytes surround each buffer.
// After the call, trouble() describes the first error in the result ("" if the result is correct).
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/client/values.hpp"

namespace client {

using Random = std::mt19937_64;
inline std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

struct Drawn {
  std::uint64_t number;  // the call's number, which determines the input values
  Collective what;
  DType dtype;
  Redop op;
  int root;
  bool in_place, uneven;
  std::vector<std::vector<std::int64_t>> blocks;  // block sizes: blocks[from][to] in an all_to_all, else blocks[0][rank]
};

// Draws a number of elements. Most drawn numbers are small, some are large, and some are zero.
inline std::int64_t drawn_count(Random& random, std::int64_t most) {
  const std::int64_t ranges[] = {1, 2, 9, 100, 5000, 60'000, 400'000, 2'500'001};
  return below(random, std::min(most + 1, ranges[below(random, 8)]));
}

inline Drawn draw(Random& random, int ranks, std::int64_t most) {
  Drawn d{random(),
          static_cast<Collective>(below(random, 9)),
          all_dtypes[below(random, 7)],
          static_cast<Redop>(below(random, 5)),
          static_cast<int>(below(random, ranks)),
          random() % 2 == 0,
          random() % 2 == 0,
          {}};
  const std::int64_t total = drawn_count(random, most), each = total / ranks;
  const bool may_be_uneven = !reduces(d.what) || d.what == Collective::reduce_scatter;
  d.uneven = d.uneven && may_be_uneven && d.what != Collective::broadcast && d.what != Collective::barrier;
  if (d.what == Collective::gather || d.what == Collective::scatter) d.in_place = false;
  if (d.what == Collective::broadcast) d.in_place = true;
  const auto block = [&](int index) {
    const bool equal = d.what == Collective::gather || d.what == Collective::scatter || d.what == Collective::all_to_all;
    return d.uneven ? below(random, 2 * each + 2) * (random() % 4 > 0) : each + (!equal && index < total % ranks);
  };
  d.blocks.resize(d.what == Collective::all_to_all ? static_cast<std::size_t>(ranks) : 1);
  for (auto& row : d.blocks)
    for (int r = 0; r < ranks; ++r) row.push_back(block(r));
  return d;
}

// A buffer with guard bytes before and after it, at a random offset. The memory comes from the world's allocator or is
// ordinary memory.
class Room {
 public:
  Room(std::int64_t bytes, Communicator& world, Random& random) : before_(64 + 8 * below(random, 9)), bytes_(bytes) {
    const std::int64_t all = before_ + bytes + 64;
    if (random() % 2 == 0) {
      symmetric_ = world.allocator().allocate(all, Category::comm);
      start_ = static_cast<unsigned char*>(symmetric_.data());
    } else {
      own_.resize(static_cast<std::size_t>(all));
      start_ = own_.data();
    }
    std::fill_n(start_, all, guard);
  }
  unsigned char* data() { return start_ + before_; }
  bool guards_are_whole() const {
    const auto is_guard = [](unsigned char byte) { return byte == guard; };
    return std::all_of(start_, start_ + before_, is_guard) &&
           std::all_of(start_ + before_ + bytes_, start_ + before_ + bytes_ + 64, is_guard);
  }

 private:
  static constexpr unsigned char guard = 0xA5;
  std::int64_t before_, bytes_;
  Buffer symmetric_;
  std::vector<unsigned char> own_;
  unsigned char* start_;
};

class Trial {
 public:
  Trial(Drawn drawn, Communicator& group, Communicator& world, Random& own)
      : d_(std::move(drawn)), rank_(group.rank()), ranks_(group.size()) {
    const auto me = static_cast<std::size_t>(rank_);
    const bool exchange = d_.what == Collective::all_to_all;
    if (exchange && d_.uneven && own() % 2 == 0) d_.in_place = !d_.in_place;  // each rank decides separately
    counts_ = d_.blocks[exchange ? me : 0];
    for (const auto& row : d_.blocks) taken_.push_back(row[me]);
    total_ = sum(counts_);
    const std::int64_t block = counts_[me];
    home_ = sum({counts_.begin(), counts_.begin() + rank_});
    const bool is_root = rank_ == d_.root;
    switch (d_.what) {
      case Collective::all_reduce:
        in_ = total_;
        out_ = total_;
        break;
      case Collective::reduce_scatter:
        in_ = total_;
        out_ = block;
        break;
      case Collective::all_gather:
        in_ = block;
        out_ = total_;
        break;
      case Collective::broadcast: in_ = out_ = total_; break;
      case Collective::reduce:
        in_ = total_;
        out_ = is_root || d_.in_place ? total_ : 0;
        break;
      case Collective::gather:
        in_ = block;
        out_ = is_root ? total_ : 0;
        break;
      case Collective::scatter:
        in_ = is_root ? total_ : 0;
        out_ = block;
        break;
      case Collective::all_to_all:
        in_ = total_;
        out_ = sum(taken_);
        break;
      case Collective::barrier: break;
    }
    const std::int64_t width = size_of(d_.dtype);
    rooms_.emplace_back((d_.in_place ? std::max({in_, out_, total_}) : in_) * width, world, own);
    if (!d_.in_place) rooms_.emplace_back(out_ * width, world, own);
    visit(d_.dtype, [&]<class T>(Type<T>) { fill<T>(); });
  }

  // Starts the call. The vectors of counts are destroyed when this function returns, before the call completes, as the
  // interface permits.
  Request start(Communicator& group) {
    return call([&](const Call& c) { return group.start(c); });
  }
  void run(Communicator& group) {
    call([&](const Call& c) { group.run(c); });
  }

  std::string trouble() {
    for (const Room& room : rooms_)
      if (!room.guards_are_whole()) return about() + " wrote outside its buffers";
    std::string text;
    visit(d_.dtype, [&]<class T>(Type<T>) { text = compared<T>(); });
    return text;
  }

  std::string about() const {
    return fmt::format("{} of {} {}, {}, root {}{}{}, rank {} of {}", name_of(d_.what), total_, name_of(d_.dtype),
                       redop_names[static_cast<std::size_t>(d_.op)], d_.root, d_.uneven ? ", uneven" : "",
                       d_.in_place ? ", in place" : "", rank_, ranks_);
  }

 private:
  static std::int64_t sum(const std::vector<std::int64_t>& x) {
    return std::accumulate(x.begin(), x.end(), std::int64_t{0});
  }

  template <class Make>
  std::invoke_result_t<Make, Call> call(Make&& make) {
    const std::vector<std::int64_t> counts = d_.uneven ? counts_ : std::vector<std::int64_t>{},
                                    taken = d_.uneven ? taken_ : counts;
    const bool exchange = d_.what == Collective::all_to_all;
    return make({d_.what, input(), output(), d_.op, d_.root, counts, exchange ? Counts(taken) : Counts()});
  }

  // In an in-place call, this rank's block is at the block's offset in the full vector.
  unsigned char* place(std::size_t room, bool is_block) {
    return rooms_[std::min(room, rooms_.size() - 1)].data() + (d_.in_place && is_block ? home_ * size_of(d_.dtype) : 0);
  }
  Slice input() { return {place(0, d_.what == Collective::all_gather), in_, d_.dtype}; }
  Slice output() { return {place(1, d_.what == Collective::reduce_scatter), out_, d_.dtype}; }

  template <class T>
  void fill() {
    T* const x = static_cast<T*>(input().data);
    for (std::int64_t i = 0; i < in_; ++i) x[i] = input_value<T>(d_.number, rank_, i, d_.op);
  }

  // Returns the source rank of output element i, and the element's index in the input of the source rank.
  std::pair<int, std::int64_t> origin(std::int64_t i) const {
    if (d_.what == Collective::broadcast) return {d_.root, i};
    if (d_.what == Collective::scatter) return {d_.root, home_ + i};
    const bool exchange = d_.what == Collective::all_to_all;
    int from = 0;
    for (const auto& sizes = exchange ? taken_ : counts_; i >= sizes[static_cast<std::size_t>(from)]; ++from)
      i -= sizes[static_cast<std::size_t>(from)];
    if (!exchange) return {from, i};
    const auto& theirs = d_.blocks[static_cast<std::size_t>(from)];
    return {from, i + sum({theirs.begin(), theirs.begin() + rank_})};
  }

  template <class T>
  T wanted(std::int64_t i) const {
    if (reduces(d_.what))
      return reduced_value<T>(d_.number, ranks_, i + (d_.what == Collective::reduce_scatter ? home_ : 0), d_.op);
    const auto [from, index] = origin(i);
    return input_value<T>(d_.number, from, index, d_.op);
  }

  template <class T>
  std::string compared() {
    const bool has_output = d_.what != Collective::reduce || rank_ == d_.root;  // outputs of other ranks are undefined
    const T* const y = static_cast<const T*>(output().data);
    for (std::int64_t i = 0; has_output && i < out_; ++i)
      if (const T right = wanted<T>(i); !same_bits(y[i], right))
        return fmt::format("{}: output element {} is {}, expected {}", about(), i, double(y[i]), double(right));
    if (d_.in_place || d_.what == Collective::barrier) return "";
    const T* const x = static_cast<const T*>(input().data);
    for (std::int64_t i = 0; i < in_; ++i)
      if (!same_bits(x[i], input_value<T>(d_.number, rank_, i, d_.op)))
        return fmt::format("{}: input element {} was changed", about(), i);
    return "";
  }

  Drawn d_;
  int rank_, ranks_;
  std::vector<std::int64_t> counts_, taken_;
  std::int64_t total_ = 0, home_ = 0, in_ = 0, out_ = 0;
  std::vector<Room> rooms_;
};

}  // namespace client
