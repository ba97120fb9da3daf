#include "src/base/parallel.hpp"
#include "src/math/attention_tiles.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/reference/attention.hpp"

namespace chorale {

// Each call widens all cached keys again. This costs little, because generation is bound by reading keys and parameters
// from memory.
void attention_cached(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Tensor& values,
                      std::int64_t past, const Tensor& out, const Queue& queue) {
  attention::check(qkv, shape, out);
  const std::int64_t samples = keys.dim(0), capacity = keys.dim(1), width = shape.width;
  require(samples > 0 && qkv.dim(0) % samples == 0, "{} rows do not divide among {} cached samples", qkv.dim(0), samples);
  const std::int64_t tokens = qkv.dim(0) / samples, all = past + tokens;
  for (const Tensor* cache : {&keys, &values})
    require(cache->dtype() == qkv.dtype() && cache->count() == samples * capacity * shape.groups * width,
            "attention expects caches {} [{}, {}, {}, {}], got {} {}", name_of(qkv.dtype()), samples, capacity, shape.groups,
            width, name_of(cache->dtype()), to_string(cache->shape()));
  require(past >= 0 && all <= capacity, "{} new tokens after {} do not fit in a cache of {}", tokens, past, capacity);
  if (qkv.phantom()) return;
  if (queue.device) return queue.device->attention_cached(qkv, shape, keys, values, past, out, queue);
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T* from = qkv.values<T>().data();
    T *cached_keys = keys.values<T>().data(), *cached_values = values.values<T>().data(), *to = out.values<T>().data();
    const Dropout none;
    parallel_for(queue.threads, samples * shape.groups, [&](std::int64_t first, std::int64_t last) {
      using namespace attention;
      const Drops drops(none, shape);
      KeyTiles tiles(all, width);
      QueryTile queries(width);
      for (std::int64_t pair = first; pair < last; ++pair) {
        const std::int64_t sample = pair / shape.groups, group = pair % shape.groups;
        const std::int64_t start = (sample * capacity * shape.groups + group) * width, stride = shape.groups * width;
        for (std::int64_t t = 0; t < tokens; ++t) {
          const T* key =
              from + (sample * tokens + t) * shape.columns() + (group * (shape.queries + 2) + shape.queries) * width;
          std::copy_n(key, width, cached_keys + start + (past + t) * stride);
          std::copy_n(key + width, width, cached_values + start + (past + t) * stride);
        }
        if constexpr (!std::is_same_v<T, double>) {
          tiles.load(cached_keys + start, cached_values + start, stride, all, width);
          attend_group(from, sample * tokens, tokens, past, shape, group, tiles, drops, queries, to,
                       static_cast<float*>(nullptr));
        }
      }
    });
    if constexpr (std::is_same_v<T, double>)
      reference::attention_cached(from, samples, tokens, shape, cached_keys, cached_values, capacity, past, to);
  });
}

}  // namespace chorale
