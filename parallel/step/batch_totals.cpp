#include "parallel/step/batch_totals.hpp"

#include <algorithm>

#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

constexpr std::int64_t before_squares = 3;  // number of elements before the words of ‖g‖²: the loss, the number of tokens,
                                            // and the number of ranks with invalid sums

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

BatchTotals::BatchTotals(Allocator& memory, bool exact, std::int64_t counts)
    : counts_(counts),
      all_(memory, {before_squares + (exact ? 4 : 1) + counts}, exact ? DType::i64 : DType::f64, Category::workspace) {}

void BatchTotals::clear() {
  chorale::clear(all_);
  tokens_ = 0;
}

Tensor BatchTotals::words() const { return all_.narrow(before_squares, all_.count() - counts_ - before_squares); }

SquareSum BatchTotals::squares() const {
  const Slice slice = words().slice();
  const bool grows_there = !slice.device.is_host() && slice.dtype == DType::f64;  // exact sums are added up on the host
  return {.there = grows_there ? slice.data : nullptr};
}

BatchTotals::Sums BatchTotals::add_up(Axis& world, bool loss_counts, bool sound, const SquareSum& squares,
                                      std::span<std::int64_t> counts) {
  Sums sums;
  const Tensor sent = counts.empty() ? all_.narrow(0, all_.count() - counts_) : all_;
  if (phantom()) {
    world.all_reduce(sent);
    return sums;
  }
  visit_sums(all_.dtype(), [&]<class T>(Type<T>) {
    if (!loss_counts) chorale::clear(loss());
    with_values<T>(all_.narrow(1, 2), Use::write, [&](std::span<T> here) {
      here[0] = static_cast<T>(tokens_);
      here[1] = static_cast<T>(sound ? 0 : 1);
    });
    if (!squares.there) with_values<T>(words(), Use::write, [&](std::span<T> here) { put(squares, here); });
    const Tensor counted = all_.narrow(all_.count() - counts_, std::ssize(counts));
    if (!counts.empty())
      with_values<T>(counted, Use::write, [&](std::span<T> here) { std::ranges::copy(counts, here.begin()); });
    world.all_reduce(sent);
    with_values<T>(sent, Use::read, [&](std::span<T> here) {
      sums = {static_cast<double>(here[0]), static_cast<double>(here[1]), static_cast<double>(here[2]),
              taken(std::span<const T>(here.subspan(before_squares, static_cast<std::size_t>(words().count()))))};
      std::ranges::transform(here.last(counts.size()), counts.begin(),
                             [](T count) { return static_cast<std::int64_t>(count); });
    });
  });
  return sums;
}

}  // namespace chorale
