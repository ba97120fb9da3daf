#include "src/math/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "src/base/error.hpp"
#include "src/math/combine.hpp"

namespace chorale {
namespace {

// Reduces two sources, the common case, without an intermediate buffer. Each iteration reads its elements before it writes
// them and accesses no other elements. The results can therefore overwrite the sources, and the pragma `ivdep` is valid.
template <Redop op, class T>
void reduce_two(std::span<void* const> outs, const T* a, const T* b, std::int64_t count) {
  const auto sum = [&](std::int64_t i) {
    return static_cast<T>(combine<op>(static_cast<Wide<T>>(a[i]), static_cast<Wide<T>>(b[i])));
  };
  T* first = static_cast<T*>(outs[0]);
  if (outs.size() == 1) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) first[i] = sum(i);
  } else {
    T* second = static_cast<T*>(outs[1]);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) first[i] = second[i] = sum(i);
  }
}

// Reduces block by block. A block stays in the L1 cache until all sources have been added to it.
template <Redop op, class T>
void reduce_typed(std::span<void* const> outs, std::span<const void* const> sources, std::int64_t count) {
  const auto source = [&](std::size_t s) { return static_cast<const T*>(sources[s]); };
  if (sources.size() == 2 && outs.size() <= 2) return reduce_two<op, T>(outs, source(0), source(1), count);
  constexpr std::int64_t piece = 2048;
  Wide<T> sum[piece];
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t here = std::min(piece, count - first);
    const T* a = source(0) + first;
    for (std::int64_t i = 0; i < here; ++i) sum[i] = static_cast<Wide<T>>(a[i]);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const T* b = source(s) + first;
      for (std::int64_t i = 0; i < here; ++i) sum[i] = combine<op>(sum[i], static_cast<Wide<T>>(b[i]));
    }
    for (void* out : outs)
      for (std::int64_t i = 0; i < here; ++i) (static_cast<T*>(out) + first)[i] = static_cast<T>(sum[i]);
  }
}

}  // namespace

void reduce(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count) {
  reduce(op, dtype, std::span(&out, 1), sources, count);
}

void reduce(Redop op, DType dtype, std::span<void* const> outs, std::span<const void* const> sources, std::int64_t count) {
  require(!sources.empty() && !outs.empty(), "a reduction needs at least one source and one result");
  with_op(op, [&](auto constant) {
    visit(dtype, [&]<class T>(Type<T>) { reduce_typed<constant(), T>(outs, sources, count); });
  });
}

void divide(DType dtype, void* out, std::int64_t count, std::int64_t by) {
  require(by > 0, "an average needs a positive number of contributions, not {}", by);
  visit(dtype, [&]<class T>(Type<T>) {
    auto* values = static_cast<T*>(out);
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(static_cast<Quotient<T>>(values[i]) / static_cast<Quotient<T>>(by));
  });
}

void reduce_reference(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count) {
  visit(dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto sum = static_cast<Wide<T>>(static_cast<const T*>(sources[0])[i]);
      for (std::size_t s = 1; s < sources.size(); ++s) {
        const auto next = static_cast<Wide<T>>(static_cast<const T*>(sources[s])[i]);
        if constexpr (std::is_floating_point_v<Wide<T>>) {
          const bool below = next < sum || (next == sum && std::signbit(next) && !std::signbit(sum));
          if (op == Redop::sum || op == Redop::avg) sum = sum + next;
          if (op == Redop::prod) sum = sum * next;
          if (op == Redop::min || op == Redop::max) {
            if (std::isnan(sum) || std::isnan(next))
              sum = std::numeric_limits<Wide<T>>::quiet_NaN();
            else if ((op == Redop::min) == below)
              sum = next;
          }
        } else {
          const auto x = static_cast<std::uint64_t>(sum), y = static_cast<std::uint64_t>(next);
          if (op == Redop::sum || op == Redop::avg) sum = static_cast<T>(x + y);
          if (op == Redop::prod) sum = static_cast<T>(x * y);
          if (op == Redop::min) sum = next < sum ? next : sum;
          if (op == Redop::max) sum = next < sum ? sum : next;
        }
      }
      static_cast<T*>(out)[i] = static_cast<T>(sum);
    }
  });
}

}  // namespace chorale
