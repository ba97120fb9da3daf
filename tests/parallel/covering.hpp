// Chooses the layouts for `make test` among all layouts of several numbers of ranks. If any layout has some pair of
// features, a chosen layout has this pair too. Features are axes, the ZeRO stage, hpz, tp with or without sp, the pipeline
// schedule, and sizes that are multiples of 3. `make test-all` uses all layouts.
//
//   dp2.tp2.z1    dp with tp, dp with z1, tp with z1, each of them without sp
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>

#include "parallel/layout/layout.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

inline std::set<std::string> parts_of(const Layout& layout) {
  std::set<std::string> parts{fmt::format("z{}", layout.zero)};
  for (std::size_t row = 0; row < layout.axes->size(); ++row)
    if (layout.size(row) > 1) parts.insert((*layout.axes)[row].name);
  if (layout.hpz) parts.insert("hpz");
  if (layout.shards() > 1) parts.insert(layout.sequence ? "sp" : "no sp");
  if (layout.stages() > 1) parts.insert(layout.schedule->name);
  if (layout.ranks() % 3 == 0) parts.insert("a multiple of 3");
  return parts;
}

// A layout is chosen if it has a pair of features that no previously chosen layout has. For each number of ranks, layouts
// with the most features are considered first.
template <class LayoutsOf>
std::vector<Layout> covering(std::initializer_list<int> worlds, LayoutsOf&& layouts_of) {
  std::vector<Layout> taken;
  std::set<std::pair<std::string, std::string>> seen;
  for (const int world : worlds) {
    std::vector<Layout> all = layouts_of(world);
    std::ranges::stable_sort(all, std::greater(), [](const Layout& layout) { return parts_of(layout).size(); });
    for (const Layout& layout : all) {
      const std::size_t before = seen.size();
      const std::set<std::string> parts = parts_of(layout);
      for (const std::string& one : parts)
        for (const std::string& other : parts) seen.insert({one, other});
      if (thorough() || seen.size() > before) taken.push_back(layout);
    }
  }
  return taken;
}

}  // namespace chorale::test
