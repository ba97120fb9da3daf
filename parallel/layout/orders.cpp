// Lists the orders in which the axes of a layout can be nested.
#include <algorithm>
#include <numeric>

#include "parallel/layout/layout.hpp"

namespace chorale {

std::vector<AxisOrder> orders_of(const Layout& layout) {
  Layout usual = layout;
  usual.order.clear();
  const AxisOrder names = usual.outwards_in();
  std::vector<std::size_t> places(names.size());
  std::iota(places.begin(), places.end(), 0);
  std::vector<AxisOrder> orders;
  do {
    AxisOrder& order = orders.emplace_back();
    for (const std::size_t place : places) order.push_back(names[place]);
    usual.order = order.size() > 1 ? order : AxisOrder{};
    if (!usual.grids_agree()) orders.pop_back();
  } while (std::ranges::next_permutation(places).found);
  return orders;
}

}  // namespace chorale
