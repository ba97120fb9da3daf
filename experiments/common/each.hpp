// Columns of rows: each(ranks, &RankFacts::host) is the vector of the ranks' hosts. `of`: a member, or a function of a row.
#pragma once
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

template <class Rows>
std::vector<std::string> names_of_rows(const Rows& rows) {
  return each(rows, [](const auto& row) { return std::string(row.name); });
}

}  // namespace chorale
