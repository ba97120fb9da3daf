// Divides the ranks of an axis into parts (subgroups) of equal size, so that a scheme can communicate within each part. All
// ranks of the axis make the same calls, and these calls send no rows between parts. So no part needs a separate
// communicator, and plans and accounts count these calls as calls of the axis.
//
//   rank of the axis      0 1 2 3              0 1 2 3
//   parts by host         a a b b   across()   c d c d      across() joins ranks with the same index in their part; a
//                                                           rank's new index is its former part
#pragma once
#include <vector>

#include "parallel/mesh/axis.hpp"

namespace chorale {

class AxisParts {
 public:
  AxisParts(Axis& axis) : AxisParts(axis, std::vector<std::int64_t>(static_cast<std::size_t>(axis.size()))) {}  // one part
  // part_of[r] is the number of the part to which rank r of the axis belongs; parts are numbered from 0. Within a part,
  // indices follow the order of ranks.
  AxisParts(Axis& axis, const std::vector<std::int64_t>& part_of);
  AxisParts across() const { return {axis_, index_, part_of_}; }

  Axis& axis() const { return axis_; }
  std::int64_t size() const { return axis_.size() / parts_; }  // number of ranks per part
  bool is_whole() const { return parts_ == 1; }
  const std::vector<std::int64_t>& part_of() const { return part_of_; }
  std::int64_t part_of(std::int64_t rank) const { return part_of_[static_cast<std::size_t>(rank)]; }
  std::int64_t index(std::int64_t rank) const { return index_[static_cast<std::size_t>(rank)]; }  // index within the part
  std::int64_t part() const { return part_of(axis_.rank()); }                                     // this rank's part
  std::int64_t rank() const { return index(axis_.rank()); }  // this rank's index within its part

  // rows(from, to) is the number of rows that rank `from` of the axis sends to rank `to` of the axis. Both ranks are in the
  // same part.
  template <class F>
  RowsBetween between(F rows) const {
    RowsBetween all;
    for (std::int64_t from = 0; from < axis_.size(); ++from)
      for (std::int64_t to = 0; to < axis_.size(); ++to) all.push_back(part_of(from) == part_of(to) ? rows(from, to) : 0);
    return all;
  }

 private:
  AxisParts(Axis& axis, std::vector<std::int64_t> part_of, std::vector<std::int64_t> index);
  Axis& axis_;
  std::vector<std::int64_t> part_of_, index_;  // one entry per rank of the axis
  std::int64_t parts_;
};

}  // namespace chorale
