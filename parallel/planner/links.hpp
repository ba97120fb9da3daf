// All transfers between hosts share the links between these hosts. A transfer has a number of equal connections on each of
// its links. Bandwidth is shared by max-min fairness: the rates of all connections rise evenly. The rate of a connection
// stops rising when the rate reaches the connection's limit, or when a link of the connection is full.
//
//   link of 100        3 connections with limits 20, 50 and 50        rates 20, 40, 40
//
// The result does not depend on whether equal transfers are counted one by one, or together as one with more connections.
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
  double limit = 0;  // maximum B/s of a connection
  double left = 0;   // remaining bytes of a connection
  double rate = 0;   // current B/s of a connection
};

// Sets the rates of all flows. `capacities`: the capacity of each link, in B/s.
void share(std::vector<LinkFlow>& flows, const std::vector<double>& capacities);

}  // namespace chorale
