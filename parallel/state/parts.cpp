#include "parallel/state/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace chorale {
namespace {

// Iterates over the elements of a part in runs. A run is a range of elements that are contiguous in the full tensor. The
// runs of a shard have equal lengths and equal distances. If the part is a range of the shard, the first and the last run of
// the part can be shorter.
class Runs {
 public:
  Runs(const Part& part, const Shape& shape) : next_(part.first), end_(part.first + part.count) {
    const Shard& shard = part.shard;
    if (shard.dim < 0) {
      length_ = stride_ = elements_of(shape);
    } else {
      const auto dim = shape.begin() + shard.dim;
      const std::int64_t inner = elements_of(Shape(dim + 1, shape.end()));
      length_ = shard.length * inner;
      stride_ = *dim * inner;
      offset_ = shard.first * inner;
    }
    take(0);
  }

  bool over() const { return length == 0; }
  // Advances by `elements`, at most to the end of the current run.
  void take(std::int64_t elements) {
    local += elements;
    global += elements;
    length -= elements;
    if (length > 0 || next_ == end_) return;
    const std::int64_t run = next_ / length_, within = next_ % length_;
    local = done_;
    global = run * stride_ + offset_ + within;
    length = std::min(length_ - within, end_ - next_);
    next_ += length;
    done_ += length;
  }

  // The rest of the current run: the index of its first element in the part and in the full tensor, and its length.
  std::int64_t local = 0, global = 0, length = 0;

 private:
  std::int64_t next_, end_, done_ = 0, length_ = 0, stride_ = 0, offset_ = 0;
};

std::int64_t shard_elements(const Shard& shard, const Shape& shape) {
  Shape local = shape;
  if (shard.dim >= 0) local[static_cast<std::size_t>(shard.dim)] = shard.length;
  return elements_of(local);
}

}  // namespace

Part resolved(const Part& part, const Shape& shape) {
  Part whole = part;
  const Shard& shard = part.shard;
  if (shard.dim < 0) {
    whole.shard = {};
  } else {
    require(shard.dim < static_cast<int>(shape.size()), "the shape {} has no dim {}", to_string(shape), shard.dim);
    const std::int64_t dim = shape[static_cast<std::size_t>(shard.dim)];
    require(shard.first >= 0 && shard.length >= 0 && shard.length <= dim && shard.first <= dim - shard.length,
            "a shard of {} indices from index {} along dim {} is not within the shape {}", shard.length, shard.first,
            shard.dim, to_string(shape));
  }
  const std::int64_t elements = shard_elements(whole.shard, shape);
  require(part.first >= 0 && part.first <= elements, "a range begins at element {} of a shard of {} elements", part.first,
          elements);
  if (part.count == -1) whole.count = elements - part.first;
  require(whole.count >= 0 && whole.count <= elements - part.first,
          "a range of {} elements from element {} does not lie within a shard of {} elements", part.count, part.first,
          elements);
  return whole;
}

// Calls `use` for each range of elements that both parts have, until `use` returns false: index of the first element in each
// part, and length.
template <class Use>
static void each_common(const Shape& shape, const Part& first, const Part& second, Use&& use) {
  Runs a(first, shape), b(second, shape);
  while (!a.over() && !b.over()) {
    const std::int64_t ahead = b.global - a.global;
    if (ahead > 0) {
      a.take(std::min(ahead, a.length));
    } else if (ahead < 0) {
      b.take(std::min(-ahead, b.length));
    } else {
      const std::int64_t common = std::min(a.length, b.length);
      if (!use(a.local, b.local, common)) return;
      a.take(common);
      b.take(common);
    }
  }
}

std::int64_t copy_common(const Shape& shape, std::int64_t element_bytes, const Part& from, std::span<const std::byte> source,
                         const Part& to, std::span<std::byte> target) {
  std::int64_t copied = 0;
  each_common(shape, from, to, [&](std::int64_t here, std::int64_t there, std::int64_t common) {
    std::memcpy(target.data() + there * element_bytes, source.data() + here * element_bytes,
                static_cast<std::size_t>(common * element_bytes));
    copied += common;
    return true;
  });
  return copied;
}

bool have_common(const Shape& shape, const Part& a, const Part& b) {
  bool found = false;
  each_common(shape, a, b, [&](std::int64_t, std::int64_t, std::int64_t) {
    found = true;
    return false;
  });
  return found;
}

std::string flaw_in_cover(const Shape& shape, std::vector<Part> parts) {
  if (elements_of(shape) == 0) return "";
  std::erase_if(parts, [](const Part& part) { return part.count == 0; });
  if (parts.empty()) return "it has no parts";
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tuple(a.shard.first, a.shard.length, a.first) < std::tuple(b.shard.first, b.shard.length, b.first);
  });
  const int dim = parts.front().shard.dim;
  const std::int64_t whole = dim < 0 ? 0 : shape[static_cast<std::size_t>(dim)];
  std::int64_t shard_end = 0, range_end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.shard.dim != dim) return fmt::format("it is cut along dim {} and along dim {}", dim, part.shard.dim);
    if (part.shard.first != shard_end)
      return fmt::format("a shard begins at {}, but the previous one ends at {}", part.shard.first, shard_end);
    if (part.first != range_end)
      return fmt::format("a range begins at {}, but the previous one ends at {}", part.first, range_end);
    range_end += part.count;
    const bool last_of_shard = i + 1 == parts.size() || parts[i + 1].shard.first != part.shard.first;
    if (!last_of_shard && parts[i + 1].shard.length != part.shard.length) return "two shards overlap";
    if (!last_of_shard) continue;
    if (range_end != shard_elements(part.shard, shape))
      return fmt::format("a shard has only {} of its {} elements", range_end, shard_elements(part.shard, shape));
    shard_end += part.shard.length;
    range_end = 0;
  }
  if (dim >= 0 && shard_end != whole)
    return fmt::format("its shards cover only {} of {} indices along dim {}", shard_end, whole, dim);
  return "";
}

}  // namespace chorale
