// Initial values: approximately normal numbers, as sums of four uniform integers (Irwin–Hall). These sums need no
// logarithm from a library, so the values have the same bits everywhere. The random numbers are keyed by the parameter's
// name and the element's index in the whole tensor, so every layout starts from the same model.
#include "layers/gpt.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// A number of mean 0 and variance 1: the centered sum of four uniform 16-bit integers, divided by the root of its variance
// 4·2³²/12.
float normal(const philox::Counter& bits) {
  std::int32_t sum = 0;
  for (const std::uint32_t word : bits) sum += static_cast<std::int32_t>(word >> 16);
  return static_cast<float>(2 * sum - 4 * 65535) * 0.5f * (1.7320508f / 65536.0f);
}

}  // namespace

void initialise(const Parameter& parameter, std::int64_t first, const Slice& values, std::uint64_t seed) {
  if (!values.data) return;
  const Random random{.seed = seed, .site = parameter.random_site()};
  const Places places = places_of(parameter.shape, parameter.slab, first);
  const auto start = static_cast<float>(parameter.start), deviation = static_cast<float>(parameter.deviation);
  on_host(values, Use::write, [&](const Slice& here) {
    visit_floating(here.dtype, [&]<class T>(Type<T>) {
      T* const out = static_cast<T*>(here.data);
      for (std::int64_t i = 0; i < here.count; ++i) {
        const float value =
            deviation == 0 ? start : start + deviation * normal(random.four(static_cast<std::uint64_t>(places(i))));
        out[i] = static_cast<T>(value);
      }
    });
  });
}

}  // namespace chorale
