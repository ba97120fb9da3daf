#include "layers/parameter.hpp"

namespace chorale {

std::uint32_t Parameter::random_site() const {  // FNV-1a
  std::uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

Places places_of(const Shape& shape, const Slab& slab, std::int64_t first) {
  const std::int64_t columns = shape.size() > 1 ? shape[1] : 1;
  return {.first = first,
          .length = slab.dim == 1 ? slab.length : columns,
          .columns = columns,
          .first_row = slab.dim == 0 ? slab.first : 0,
          .first_column = slab.dim == 1 ? slab.first : 0};
}

}  // namespace chorale
