// What a collective must give: inputs are small whole numbers hashed from (rank, index), so that sums and products are exact in every
// type and every order, and the expected output of any rank can be computed alone.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "collectives/communicator.hpp"
#include "collectives/problem.hpp"

namespace chorale::test {

inline int value_at(int rank, std::int64_t index, Redop op) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(rank) * 1000003u + static_cast<std::uint64_t>(index)) * 0x9E3779B97F4A7C15u;
  const int small = static_cast<int>(hash >> 61);                              // 0 … 7
  return op == Redop::prod ? 1 + (small == 0) : op == Redop::avg ? 8 : small;  // an average of equals is exact
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

// The rank and index of the input that output element i comes from, where nothing is reduced.
inline std::pair<int, std::int64_t> origin(const Problem& p, std::int64_t i) {
  if (p.what == Collective::broadcast) return {p.root, i};
  if (p.what == Collective::scatter) return {p.root, p.blocks.first(p.rank) + i};
  const Blocks& blocks = p.what == Collective::all_to_all ? p.taken : p.blocks;
  int from = 0;
  while (blocks.first(from) + blocks.count(from) <= i) ++from;
  return {from, i - blocks.first(from)};
}

// Makes one call on buffers from `allocator` and says what is wrong with the result; "" when all is right.
template <class Run>
std::string try_call(const Problem& p, DType dtype, Redop op, Allocator& allocator, Run&& run,
                     const std::vector<Problem>& all = {}) {
  const bool reduces =
      p.what == Collective::all_reduce || p.what == Collective::reduce_scatter || p.what == Collective::reduce;
  const std::int64_t element = size_of(dtype), whole = p.blocks.total();
  Buffer in = allocator.allocate((p.in_place ? whole : p.input_count()) * element, Category::workspace);
  Buffer out = allocator.allocate(p.in_place ? 0 : p.output_count() * element, Category::workspace);
  const auto at = [&](Buffer& buffer, std::int64_t home) { return static_cast<std::byte*>(buffer.data()) + home * element; };
  const Slice input{p.in_place ? at(in, p.input_home()) : in.data(), p.input_count(), dtype};
  const Slice output{p.in_place ? at(in, p.output_home()) : out.data(), p.output_count(), dtype};
  std::string trouble;
  visit(dtype, [&]<class T>(Type<T>) {
    const std::int64_t first = p.takes_block() ? 0 : p.input_home();
    if (!p.in_place)
      for (std::int64_t i = 0; i < p.output_count(); ++i) put<T>(output.data, i, 99);
    for (std::int64_t i = 0; i < input.count; ++i) put<T>(input.data, i, value_at(p.rank, first + i, op));
    run(input, output);
    for (std::int64_t i = 0; i < output.count && trouble.empty(); ++i) {
      double wanted = 0;
      if (reduces) {
        wanted = expected_at(p, op, p.output_home() + i);
      } else {
        auto [from, index] = origin(p, i);
        if (p.what == Collective::all_to_all)  // the sender's block for us starts where its own counts say
          index += (all.empty() ? p.at(from) : all[static_cast<std::size_t>(from)]).blocks.first(p.rank);
        wanted = value_at(from, index, op);
      }
      if (got<T>(output.data, i) != wanted)
        trouble = fmt::format("rank {}: element {} is {}, not {}", p.rank, i, got<T>(output.data, i), wanted);
    }
  });
  return trouble;
}

}  // namespace chorale::test
