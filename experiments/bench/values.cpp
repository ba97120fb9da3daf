#include "experiments/bench/values.hpp"

#include <algorithm>
#include <type_traits>

#include "src/base/error.hpp"

namespace chorale::bench {
namespace {

constexpr std::int64_t piece = 1024;  // number of elements per pass; one pass fits into the L1 cache

// Two multiplications and shifts mix every bit of the rank, the index and the round into the upper bits of the hash.
// Compilers vectorize loops over this function.
std::uint32_t hash(std::uint32_t salt, std::int64_t index) {
  auto x = static_cast<std::uint32_t>(index) * 0x9E3779B1u + static_cast<std::uint32_t>(index >> 32) + salt;
  x = (x ^ x >> 15) * 0x2C1B3C6Du;
  x = (x ^ x >> 12) * 0x297A2D39u;
  return x ^ x >> 15;
}

// Maps random bits to an integer from `low` to `low` + `choices` − 1.
int pick(std::uint32_t bits, int low, int choices) {
  return low + static_cast<int>((bits >> 16) * static_cast<std::uint32_t>(choices) >> 16);
}

template <class T>
T result_of(int combined, Redop op, int ranks) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;  // 16-bit types are divided in f32
  if (op == Redop::avg) return static_cast<T>(static_cast<Wide>(combined) / static_cast<Wide>(ranks));
  return static_cast<T>(static_cast<Wide>(combined));
}

}  // namespace

void Values::inputs(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const {
  const std::uint32_t salt = static_cast<std::uint32_t>(rank) * 0x85EBCA77u + round * 0xC2B2AE3Du;
  const auto fill = [&](auto value) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = value(hash(salt, first + static_cast<std::int64_t>(i)));
  };
  const auto evenly = [&](int low, int choices) { fill([=](std::uint32_t bits) { return pick(bits, low, choices); }); };
  const int most = std::clamp(most_ranks_summed / ranks, 1, 7);
  const bool may_double = (static_cast<std::uint32_t>(rank) + round) % static_cast<std::uint32_t>(ranks) < 4;
  if (!reduces(what))
    evenly(is_unsigned ? 0 : -128, 256);
  else if (op == Redop::min || op == Redop::max)
    evenly(is_unsigned ? 0 : -100, 201);
  else if (op != Redop::prod)
    evenly(is_unsigned ? 0 : -most, is_unsigned ? most + 1 : 2 * most + 1);
  else
    fill([=](std::uint32_t bits) {
      const int size = may_double && (bits & 1u << 30) ? 2 : 1;
      return bits >> 31 ? size : is_unsigned && size == 1 ? 3 : is_unsigned ? 2 : -size;
    });
}

void Values::fill(int rank, const Slice& x, std::int64_t first) const {
  visit(x.dtype, [&]<class T>(Type<T>) {
    int values[piece];
    for (std::int64_t done = 0; done < x.count; done += piece) {
      const std::int64_t here = std::min(piece, x.count - done);
      inputs(rank, first + done, std::is_unsigned_v<T>, {values, static_cast<std::size_t>(here)});
      for (std::int64_t i = 0; i < here; ++i) static_cast<T*>(x.data)[done + i] = result_of<T>(values[i], Redop::sum, ranks);
    }
  });
}

// Computes the results as exact integers. For an average, the caller divides them; for u8, it reduces them modulo 256.
void Values::expect(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const {
  if (reduces(what)) {
    int next[piece];
    const std::span<int> theirs(next, into.size());
    inputs(0, first, is_unsigned, into);
    for (int r = 1; r < ranks; ++r) {
      inputs(r, first, is_unsigned, theirs);
      for (std::size_t i = 0; i < into.size(); ++i) {
        const int a = into[i], b = theirs[i];
        into[i] = op == Redop::min    ? std::min(a, b)
                  : op == Redop::max  ? std::max(a, b)
                  : op == Redop::prod ? static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b))
                                      : a + b;
      }
    }
    return;
  }
  if (what == Collective::broadcast || what == Collective::scatter) return inputs(root, first, is_unsigned, into);
  for (std::size_t done = 0; done < into.size();) {  // block by block; each block comes from the rank that owns it
    const std::int64_t at = first + static_cast<std::int64_t>(done), owner = at / block;
    const auto here = std::min(into.size() - done, static_cast<std::size_t>((owner + 1) * block - at));
    const std::int64_t there = what == Collective::all_to_all ? rank * block + at % block : at;
    inputs(static_cast<int>(owner), there, is_unsigned, into.subspan(done, here));
    done += here;
  }
}

std::int64_t Values::wrong(int rank, const Slice& result, std::int64_t first) const {
  require(!reduces(what) || ranks <= most_ranks_summed, "sums over {} ranks are not exact in every type", ranks);
  std::int64_t count = 0;
  visit(result.dtype, [&]<class T>(Type<T>) {
    int values[piece];
    for (std::int64_t done = 0; done < result.count; done += piece) {
      const std::int64_t here = std::min(piece, result.count - done);
      expect(rank, first + done, std::is_unsigned_v<T>, {values, static_cast<std::size_t>(here)});
      const Redop last = reduces(what) ? op : Redop::sum;
      for (std::int64_t i = 0; i < here; ++i)
        count += !(static_cast<const T*>(result.data)[done + i] == result_of<T>(values[i], last, ranks));
    }
  });
  return count;
}

}  // namespace chorale::bench
