// All transfers between hosts share the links between these hosts. A transfer has a number of equal connections on each of
// its links. Bandwidth is shared by max-min fairness. The rates of all connections rise at the same pace. A connection's
// rate stops rising when the rate reaches the connection's limit, or when one of the connection's links is full.
//
//   link of 100        3 connections with limits 20, 50 and 50        rates 20, 40, 40
//
// Several equal transfers get the same rates as a single transfer with the same total number of connections.
#pragma once
#include <cstdint>
#include <vector>

namespace chorale {

struct LinkUse {
  int link = 0;
  std::int64_t connections = 1;
};

struct LinkFlow {
  int transfer = -1;
  std::vector<LinkUse> uses;
  double limit = 0;  // maximum rate of a connection in B/s
  double left = 0;   // remaining bytes of a connection
  double rate = 0;   // current rate of a connection in B/s
};

// Sets the rates of all flows. `capacities`: the capacity of each link, in B/s.
void share(std::vector<LinkFlow>& flows, const std::vector<double>& capacities);

}  // namespace chorale
