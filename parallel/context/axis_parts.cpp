#include "parallel/context/axis_parts.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale {
namespace {

std::vector<std::int64_t> indices(const std::vector<std::int64_t>& part_of) {
  std::vector<std::int64_t> index;
  for (auto rank = part_of.begin(); rank != part_of.end(); ++rank) index.push_back(std::count(part_of.begin(), rank, *rank));
  return index;
}

}  // namespace

AxisParts::AxisParts(Axis& axis, const std::vector<std::int64_t>& part_of) : AxisParts(axis, part_of, indices(part_of)) {}

AxisParts::AxisParts(Axis& axis, std::vector<std::int64_t> part_of, std::vector<std::int64_t> index)
    : axis_(axis), part_of_(std::move(part_of)), index_(std::move(index)), parts_(std::ranges::max(part_of_) + 1) {
  require(std::ssize(part_of_) == axis.size(), "{} parts were given for {} ranks", part_of_.size(), axis.size());
  require(parts_ * (std::ranges::max(index_) + 1) == axis.size(), "the {} parts of {} ranks are unequal", parts_,
          axis.size());
}

}  // namespace chorale
