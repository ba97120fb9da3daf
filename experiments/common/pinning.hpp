// Draws the ranks of a layout on their hosts, with the coordinates of each rank. Below the drawing, each axis has a line
// that says whether the groups of this axis stay on one host or cross hosts.
//
//   n0 │ 0 dp0 tp0 │ 1 dp0 tp1          tp  stays on hosts   0-1  2-3
//   n1 │ 2 dp1 tp0 │ 3 dp1 tp1          dp  crosses hosts    0,2  1,3
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "parallel/layout/layout.hpp"
#include "src/base/topology.hpp"

namespace chorale {

struct Pinning {
  Layout layout;
  Topology topology;
  std::vector<std::string> places;  // indexed by rank: "socket 0, cores 0-3"; empty for emulated hosts
};

std::string drawing_of(const Pinning& pinning);  // at most 80 columns
nlohmann::ordered_json json_of(const Pinning& pinning);

}  // namespace chorale
