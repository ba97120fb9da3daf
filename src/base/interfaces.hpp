// Network interfaces that a launch may use. Open MPI and UCX can be told which ones: OMPI_MCA_btl_tcp_if_include,
// UCX_NET_DEVICES. If all of these reach no other host, for example lo, Open MPI waits forever for the first message.
#pragma once
#include <string>
#include <vector>

#include "src/base/launch.hpp"

namespace chorale {

struct Interface {
  std::string name, address;  // "eth0", "10.77.1.1"
  bool loopback = false, up = true;
};
std::vector<Interface> network_interfaces();                     // those of this host that have an IPv4 address
std::string in_words(const std::vector<Interface>& interfaces);  // "eth0 (10.77.1.1), docker0 (172.17.0.1)", without lo

// Whether the launcher started ranks on several hosts, by its variables. False if it does not say.
bool on_several_hosts(const Environment& environment);

// Throws a usage error if the ranks are on several hosts, and every interface that a variable allows is loopback or down.
// Other names may be devices, or interfaces without an IPv4 address. A variable that the run does not use is ignored:
// that of TCP if other variables exclude TCP, that of UCX unless `may_use_ucx`.
void require_reaching_interfaces(const Launch& launch, const Environment& environment,
                                 const std::vector<Interface>& interfaces, const std::string& host, bool may_use_ucx);

}  // namespace chorale
