#include "layers/parameter.hpp"

namespace chorale {

std::uint32_t Parameter::random_site() const {  // FNV-1a
  std::uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

Places places_of(const Shape& shape, const Shard& shard, std::int64_t first) {
  const std::int64_t columns = shape.size() > 1 ? shape[1] : 1;
  return {.first = first,
          .length = shard.dim == 1 ? shard.length : columns,
          .columns = columns,
          .first_row = shard.dim == 0 ? shard.first : 0,
          .first_column = shard.dim == 1 ? shard.first : 0};
}

}  // namespace chorale
