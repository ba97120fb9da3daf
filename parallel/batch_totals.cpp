#include "parallel/batch_totals.hpp"

#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

constexpr std::int64_t before_squares = 3;  // loss, tokens, ranks with bad sums

void put(const SquareSum& sum, std::span<double> words) { words[0] = sum.fast; }
void put(const SquareSum& sum, std::span<std::int64_t> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<std::uint32_t>(static_cast<unsigned __int128>(sum.exact) >> (32 * i));
}

SquareSum taken(std::span<const double> words) { return {.fast = words[0]}; }
SquareSum taken(std::span<const std::int64_t> words) {
  SquareSum sum;
  for (std::size_t i = words.size(); i-- > 0;) sum.exact = (sum.exact << 32) + words[i];
  return sum;
}

template <class F>
void visit_sums(DType dtype, F&& f) {
  if (dtype == DType::i64)
    f(Type<std::int64_t>{});
  else
    f(Type<double>{});
}

}  // namespace

BatchTotals::BatchTotals(Allocator& memory, bool exact)
    : all_(memory, {before_squares + (exact ? 4 : 1)}, exact ? DType::i64 : DType::f64, Category::workspace) {}

SquareSum BatchTotals::squares() const {
  const Slice words = all_.narrow(before_squares, all_.count() - before_squares).slice();
  const bool grows_there = !words.device.is_host() && words.dtype == DType::f64;  // the host adds up exact sums
  return {.there = grows_there ? words.data : nullptr};
}

BatchTotals::Sums BatchTotals::add_up(Axis& world, bool loss_counts, std::int64_t tokens, bool sound,
                                      const SquareSum& squares) {
  Sums sums;
  if (phantom()) return world.all_reduce(all_), sums;
  visit_sums(all_.dtype(), [&]<class T>(Type<T>) {
    if (!loss_counts) chorale::clear(loss());
    with_values<T>(all_.narrow(1, 2), Use::write, [&](std::span<T> here) {
      here[0] = static_cast<T>(tokens);
      here[1] = static_cast<T>(sound ? 0 : 1);
    });
    const Tensor words = all_.narrow(before_squares, all_.count() - before_squares);
    if (!squares.there) with_values<T>(words, Use::write, [&](std::span<T> here) { put(squares, here); });
    world.all_reduce(all_);
    with_values<T>(all_, Use::read, [&](std::span<T> here) {
      sums = {static_cast<double>(here[0]), static_cast<double>(here[1]), static_cast<double>(here[2]),
              taken(std::span<const T>(here.subspan(before_squares)))};
    });
  });
  return sums;
}

}  // namespace chorale
