// Columns of rows: each(ranks, &RankFacts::host) is the vector of the ranks' hosts. `of`: a member, or a function of a row.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace chorale {

template <class Rows, class Of>
auto each(const Rows& rows, Of of) {
  std::vector<std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(rows))>>> values;
  for (const auto& row : rows) values.push_back(std::invoke(of, row));
  return values;
}

// Splits rows into groups with equal values of `key`, in the order in which the groups first appear. Takes rows, or pointers
// to rows; returns groups of pointers.
template <class Rows, class Key>
auto grouped(const Rows& rows, Key key) {
  const auto pointer_to = [](const auto& row) {
    if constexpr (std::is_pointer_v<std::decay_t<decltype(row)>>)
      return row;
    else
      return &row;
  };
  std::vector<std::vector<decltype(pointer_to(*std::begin(rows)))>> groups;
  for (const auto& each_row : rows) {
    const auto row = pointer_to(each_row);
    const auto is_alike = [&](const auto& group) { return std::invoke(key, *group[0]) == std::invoke(key, *row); };
    if (const auto found = std::ranges::find_if(groups, is_alike); found != groups.end())
      found->push_back(row);
    else
      groups.push_back({row});
  }
  return groups;
}

template <class Rows>
std::vector<std::string> names_of_rows(const Rows& rows) {
  return each(rows, [](const auto& row) { return std::string(row.name); });
}

}  // namespace chorale
