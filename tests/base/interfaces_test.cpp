#include "src/base/interfaces.hpp"

#include "tests/refused.hpp"

using namespace chorale;

namespace {

const std::vector<Interface> interfaces{
    {"lo", "127.0.0.1", true}, {"docker0", "172.17.0.1", false, false}, {"eth0", "10.77.1.2"}};

using Variables = std::vector<std::pair<std::string, std::string>>;

Environment environment_of(Variables variables, bool several_hosts = true) {
  variables.emplace_back("OMPI_COMM_WORLD_SIZE", "4");
  variables.emplace_back("OMPI_COMM_WORLD_LOCAL_SIZE", several_hosts ? "2" : "4");
  return [variables](const char* name) -> std::optional<std::string> {
    for (const auto& [key, value] : variables)
      if (key == name) return value;
    return {};
  };
}

std::string error_of(const Environment& environment) {
  return test::refused([&] { require_reaching_interfaces({.rank = 3, .size = 4}, environment, interfaces, "n1"); });
}

}  // namespace

TEST_CASE("an interface that reaches no other host is refused with rank, host, variable and a better one") {
  for (const char* variable : {"OMPI_MCA_btl_tcp_if_include", "UCX_NET_DEVICES"}) {
    CHECK_THAT(error_of(environment_of({{variable, "lo"}})),
               says("rank 3 on n1: ") && says(std::string(variable) + " = lo, which is the loopback interface") &&
                   says("interfaces: eth0 (10.77.1.2)") && says("set it to eth0"));
    CHECK_THAT(error_of(environment_of({{variable, "docker0"}})), says("docker0, which is down"));
    for (const char* works : {"eth0", "lo,eth0", "", "10.77.1.0/24"})
      CHECK(error_of(environment_of({{variable, works}})) == "accepted");
    CHECK(error_of(environment_of({{variable, "lo"}}, false)) == "accepted");
  }
  CHECK_THAT(error_of(environment_of({{"OMPI_MCA_btl_tcp_if_include", "127.0.0.0/8"}})), says("the loopback network"));
  CHECK_THAT(error_of(environment_of({{"OMPI_MCA_btl_tcp_if_include", "ib0"}})), says("ib0, which does not exist"));
  CHECK(error_of(environment_of({{"UCX_NET_DEVICES", "mlx5_0:1"}})) == "accepted");  // a device, no interface
  CHECK(error_of(environment_of({{"UCX_NET_DEVICES", "all"}})) == "accepted");
}

TEST_CASE("this host has a loopback interface") {
  const std::vector<Interface> here = network_interfaces();
  CHECK((here.empty() || std::ranges::any_of(here, &Interface::loopback)));
}
