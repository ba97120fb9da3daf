// The expected results of collectives. Inputs are small integers, hashed from the rank and the element's index. So sums and
// products over up to 70 ranks are exact in every type and in every order of the operations. Any rank can compute the
// expected output of every rank.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <chorale/problem.hpp>
#include "collectives/call/communicator.hpp"

namespace chorale::test {

inline int value_at(int rank, std::int64_t index, Redop op) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(rank) * 1000003u + static_cast<std::uint64_t>(index)) * 0x9E3779B97F4A7C15u;
  const int small = static_cast<int>(hash >> 62);                // 0 … 3
  if (op == Redop::prod) return 1 + ((rank + index) % 10 == 0);  // at most 7 of 70 factors are 2: the product fits in u8
  return op == Redop::avg ? 2 : small;                           // avg: every input is 2, so the average is exact
}

inline int expected_at(const Problem& p, Redop op, std::int64_t element) {
  int result = value_at(0, element, op);
  for (int r = 1; r < p.size; ++r) {
    const int next = value_at(r, element, op);
    if (op == Redop::sum) result += next;
    if (op == Redop::prod) result *= next;
    if (op == Redop::min) result = std::min(result, next);
    if (op == Redop::max) result = std::max(result, next);
  }
  return result;
}

template <class T>
void put(void* data, std::int64_t index, int value) {
  static_cast<T*>(data)[index] = static_cast<T>(static_cast<std::conditional_t<std::is_integral_v<T>, T, float>>(value));
}
template <class T>
double got(const void* data, std::int64_t index) {
  const T value = static_cast<const T*>(data)[index];
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

// For collectives that do not reduce. Returns the source rank of output element i, and the element's index in the input of
// the source rank. In an all_to_all, the index is relative to the start of the block that is sent to this rank.
inline std::pair<int, std::int64_t> origin(const Problem& p, std::int64_t i) {
  if (p.what == Collective::broadcast) return {p.root, i};
  if (p.what == Collective::scatter) return {p.root, p.blocks.first(p.rank) + i};
  const Blocks& blocks = p.what == Collective::all_to_all ? p.taken : p.blocks;
  int from = 0;
  while (blocks.first(from) + blocks.count(from) <= i) ++from;
  return {from, i - blocks.first(from)};
}

// The buffers of one call on one rank, filled with input values. After the call, trouble() describes the first error in the
// result ("" if the result is correct).
class Trial {
 public:
  // `all`: the problems of all ranks, if they differ from `problem.at(rank)`.
  Trial(const Problem& problem, DType dtype, Redop op, Allocator& allocator, std::vector<Problem> all = {})
      : problem_(problem), dtype_(dtype), op_(op), all_(std::move(all)) {
    const Problem& p = problem_;
    const std::int64_t element = size_of(dtype);
    in_ = allocator.allocate((p.in_place ? std::max(p.blocks.total(), p.output_count()) : p.input_count()) * element,
                             Category::workspace);
    out_ = allocator.allocate(p.in_place ? 0 : p.output_count() * element, Category::workspace);
    visit(dtype, [&]<class T>(Type<T>) {
      const std::int64_t first = p.takes_block() ? 0 : p.input_home();
      if (!p.in_place)
        for (std::int64_t i = 0; i < p.output_count(); ++i) put<T>(output().data, i, 99);
      for (std::int64_t i = 0; i < p.input_count(); ++i) put<T>(input().data, i, value_at(p.rank, first + i, op));
    });
  }

  Slice input() const { return {place(in_, problem_.input_home()), problem_.input_count(), dtype_}; }
  Slice output() const {
    return {place(problem_.in_place ? in_ : out_, problem_.output_home()), problem_.output_count(), dtype_};
  }
  Call call() const {
    const Slice given = problem_.what == Collective::broadcast ? output() : input();  // a broadcast has one buffer
    return {problem_.what, given, output(), op_, problem_.root};
  }

  std::string trouble() const {
    std::string text;
    visit(dtype_, [&]<class T>(Type<T>) {
      for (std::int64_t i = 0; i < problem_.output_count() && text.empty(); ++i)
        if (const double found = got<T>(output().data, i); found != wanted(i))
          text =
              fmt::format("{} of {} {} {}, root {}{}: rank {}, output element {} is {}, expected {}", name_of(problem_.what),
                          problem_.blocks.total(), name_of(dtype_), redop_names[static_cast<std::size_t>(op_)],
                          problem_.root, problem_.in_place ? ", in place" : "", problem_.rank, i, found, wanted(i));
    });
    return text;
  }

 private:
  void* place(const Buffer& buffer, std::int64_t home) const {
    return static_cast<std::byte*>(buffer.data()) + (problem_.in_place ? home * size_of(dtype_) : 0);
  }

  double wanted(std::int64_t i) const {
    const Problem& p = problem_;
    if (reduces(p.what)) return expected_at(p, op_, p.output_home() + i);
    auto [from, index] = origin(p, i);
    if (p.what == Collective::all_to_all)  // the sender's counts give the start of the block for this rank
      index += (all_.empty() ? p : all_[static_cast<std::size_t>(from)]).blocks.first(p.rank);
    return value_at(from, index, op_);
  }

  Problem problem_;
  DType dtype_;
  Redop op_;
  std::vector<Problem> all_;
  Buffer in_, out_;
};

}  // namespace chorale::test
