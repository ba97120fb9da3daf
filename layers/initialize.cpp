// Initial values: approximately normal numbers, each the sum of four uniform integers (Irwin–Hall). These sums do not use
// the C library's logarithm, so the values are bit-identical on every machine. The random numbers are keyed by the
// parameter's name and the element's index in the complete tensor. So every layout starts from the same model.
#include "layers/gpt.hpp"
#include "src/base/parallel.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

constexpr int lanes = 16;  // counters per call of philox::blocks

// Returns a random number of mean 0 and variance 1: the centered sum of four uniform 16-bit integers, divided by its
// standard deviation √(4·2³²/12).
float normal(const std::uint32_t* bits) {
  std::int32_t sum = 0;
  for (int word = 0; word < 4; ++word) sum += static_cast<std::int32_t>(bits[word] >> 16);
  return static_cast<float>(2 * sum - 4 * 65535) * 0.5f * (1.7320508f / 65536.0f);
}

// Calls f(i, x) for each element i in [`first`, `last`), where x is the element's normally distributed random number. In the
// complete tensor, these elements have consecutive indices, of which the first is `place`.
template <class F>
void each_normal(const Random& random, std::int64_t place, std::int64_t first, std::int64_t last, F f) {
  std::uint32_t words[4 * lanes];
  for (std::int64_t i = first; i < last; i += lanes, place += lanes) {
    philox::blocks(static_cast<std::uint64_t>(place), random.site, random.step, random.key(), words);
    const std::int64_t here = std::min<std::int64_t>(lanes, last - i);
    for (std::int64_t lane = 0; lane < here; ++lane) f(i + lane, normal(words + 4 * lane));
  }
}

}  // namespace

void initialize(const Parameter& parameter, std::int64_t first, const Slice& values, std::uint64_t seed, int threads) {
  if (!values.data) return;
  const Random random{.seed = seed, .site = parameter.random_site()};
  const Places places = places_of(parameter.shape, parameter.shard, first);
  const auto start = static_cast<float>(parameter.start), deviation = static_cast<float>(parameter.deviation);
  on_host(values, Use::write, [&](const Slice& here) {
    visit_floating(here.dtype, [&]<class T>(Type<T>) {
      T* const out = static_cast<T*>(here.data);
      parallel_for(threads, here.count, [&](std::int64_t begin, std::int64_t end) {
        if (deviation == 0) return std::fill(out + begin, out + end, static_cast<T>(start));
        for (std::int64_t i = begin; i < end;) {
          const std::int64_t row_ends = std::min(end, i + places.length - (places.first + i) % places.length);
          each_normal(random, places(i), i, row_ends,
                      [&](std::int64_t at, float value) { out[at] = static_cast<T>(start + deviation * value); });
          i = row_ends;
        }
      });
    });
  });
}

}  // namespace chorale
