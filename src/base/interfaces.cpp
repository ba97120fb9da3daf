#include "src/base/interfaces.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns the reason why the interface in this list entry cannot reach another host, or "" if it might reach one.
std::string why_not(const std::string& entry, const std::vector<Interface>& interfaces) {
  if (entry.starts_with("127.")) return "is the loopback network";
  const auto found = std::ranges::find(interfaces, entry, &Interface::name);
  if (found == interfaces.end()) return "";
  return found->loopback ? "is the loopback interface" : found->up ? "" : "is down";
}

// Whether the value of an Open MPI variable, such as "ob1,ucx" or "^tcp", allows this component.
bool allows(const std::optional<std::string>& components, const char* name) {
  if (!components || components->empty()) return true;
  return components->starts_with('^') != (components->find(name) != std::string::npos);
}

}  // namespace

std::vector<Interface> network_interfaces() {
  std::vector<Interface> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return all;
  for (const ifaddrs* each = list; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text.data(), text.size());
    all.push_back({each->ifa_name, text.data(), (each->ifa_flags & IFF_LOOPBACK) != 0, (each->ifa_flags & IFF_UP) != 0});
  }
  freeifaddrs(list);
  return all;
}

std::string in_words(const std::vector<Interface>& interfaces) {
  std::vector<std::string> words;
  for (const Interface& each : interfaces)
    if (!each.loopback && each.up) words.push_back(fmt::format("{} ({})", each.name, each.address));
  return words.empty() ? "none but loopback" : join(words, ", ");
}

bool on_several_hosts(const Environment& environment) {
  if (const auto nodes = environment("SLURM_STEP_NUM_NODES"); nodes && !environment("OMPI_COMM_WORLD_SIZE"))
    return *nodes != "1";
  for (const auto& [all, here] :
       {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, {"PMI_SIZE", "MPI_LOCALNRANKS"}})
    if (environment(all) && environment(here)) return *environment(all) != *environment(here);
  return false;
}

void require_reaching_interfaces(const Launch& launch, const Environment& environment,
                                 const std::vector<Interface>& interfaces, const std::string& host, bool may_use_ucx) {
  if (!on_several_hosts(environment)) return;
  const bool may_use_tcp = allows(environment("OMPI_MCA_pml"), "ob1") && allows(environment("OMPI_MCA_btl"), "tcp");
  for (const auto& [variable, is_used] :
       {std::pair{"OMPI_MCA_btl_tcp_if_include", may_use_tcp}, {"UCX_NET_DEVICES", may_use_ucx}}) {
    const std::vector<std::string> entries = split(environment(variable).value_or(""), ',');
    const auto reaches = [&](const std::string& entry) { return why_not(entry, interfaces).empty(); };
    if (!is_used || entries.empty() || std::ranges::any_of(entries, reaches)) continue;
    const auto better = std::ranges::find_if(interfaces, [](const Interface& each) { return !each.loopback && each.up; });
    usage_error("the network interface reaches no other host",
                fmt::format("rank {} on {}: {} = {}, which {}; interfaces: {}", launch.rank, host, variable,
                            join(entries, ","), why_not(entries[0], interfaces), in_words(interfaces)),
                better == interfaces.end() ? "connect the hosts first"
                                           : fmt::format("unset {}, or set it to {}", variable, better->name));
  }
}

}  // namespace chorale
