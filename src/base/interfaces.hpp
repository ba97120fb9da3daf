// The network interfaces that a run may use. OMPI_MCA_btl_tcp_if_include restricts them for Open MPI, UCX_NET_DEVICES for
// UCX. If none of the allowed interfaces reaches another host (lo alone, for example), Open MPI waits forever for the first
// message.
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

// Whether, according to its variables, the launcher started ranks on several hosts. False if the variables do not say.
bool on_several_hosts(const Environment& environment);

// Throws a usage error if the ranks are on several hosts, and every interface that a variable allows is loopback or down.
// Unknown names are accepted, because they may be devices, or interfaces without an IPv4 address. A variable that has no
// effect on this run is ignored: the TCP variable if other variables exclude TCP, the UCX variable unless `may_use_ucx`.
void require_reaching_interfaces(const Launch& launch, const Environment& environment,
                                 const std::vector<Interface>& interfaces, const std::string& host, bool may_use_ucx);

}  // namespace chorale
