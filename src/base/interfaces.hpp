// The network interfaces that a run is allowed to use. OMPI_MCA_btl_tcp_if_include restricts the interfaces for Open MPI,
// and UCX_NET_DEVICES restricts them for UCX. If none of the allowed interfaces reaches a second host (lo alone, for
// example), Open MPI waits forever for the first message.
#pragma once
#include <string>
#include <vector>

#include "src/base/launch.hpp"

namespace chorale {

struct Interface {
  std::string name, address;  // "eth0", "10.77.1.1"
  bool loopback = false, up = true;
};
std::vector<Interface> network_interfaces();                     // the interfaces of this host that have an IPv4 address
std::string in_words(const std::vector<Interface>& interfaces);  // "eth0 (10.77.1.1), docker0 (172.17.0.1)", without lo

// Whether the launcher started ranks on several hosts, according to its environment variables. Returns false if these
// variables do not contain the number of hosts.
bool on_several_hosts(const Environment& environment);

// Throws a usage error if the ranks are on several hosts and every interface that a variable allows is loopback or down.
// Unknown names are accepted, because they can be devices, or interfaces without an IPv4 address. Ignores a variable that
// has no effect on this run: the TCP variable if other variables exclude TCP, and the UCX variable unless `may_use_ucx`.
void require_reaching_interfaces(const Launch& launch, const Environment& environment,
                                 const std::vector<Interface>& interfaces, const std::string& host, bool may_use_ucx);

}  // namespace chorale
