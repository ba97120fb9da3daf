// Shares resources among activities by max-min fairness. An activity has a number of equal parts on each resource that it
// uses, such as connections on a link. The rates of all parts rise at the same pace. A part's rate stops rising when it
// reaches the activity's limit, or when one of its resources is used up.
//
//   link of 100        3 connections with limits 20, 50 and 50        rates 20, 40, 40
//
// Several equal activities get the same rates as a single one with the same total number of parts, bit for bit.
#pragma once
#include "src/simulation/engine.hpp"

namespace chorale {

// `capacities`: what each resource gives per second, indexed by resource.
Sharing max_min(std::vector<double> capacities);

}  // namespace chorale
