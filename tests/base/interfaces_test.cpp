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

std::string error_of(const Environment& environment, bool may_use_ucx = true) {
  const Launch launch{.rank = 3, .size = 4};
  return test::refused([&] { require_reaching_interfaces(launch, environment, interfaces, "n1", may_use_ucx); });
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
}

TEST_CASE("only interfaces that certainly reach no other host are refused, and only if the run may use them") {
  const auto accepted = [](const Variables& variables, bool may_use_ucx = true) {
    return error_of(environment_of(variables), may_use_ucx) == "accepted";
  };
  const std::pair<std::string, std::string> tcp_by_loopback{"OMPI_MCA_btl_tcp_if_include", "lo"};
  CHECK(accepted({{"OMPI_MCA_btl_tcp_if_include", "ib0"}}));  // accepted: an interface may have no IPv4 address
  CHECK(accepted({{"OMPI_MCA_btl_tcp_if_include", "fe80::/64"}}));
  CHECK(accepted({{"UCX_NET_DEVICES", "mlx5_0:1"}}));  // an RDMA device, not a network interface
  CHECK(accepted({{"UCX_NET_DEVICES", "all"}}));
  CHECK(accepted({{"UCX_NET_DEVICES", "lo"}}, false));
  for (const char* other : {"ucx", "cm", "^ob1"}) CHECK(accepted({tcp_by_loopback, {"OMPI_MCA_pml", other}}));
  for (const char* other : {"self,vader", "^tcp"}) CHECK(accepted({tcp_by_loopback, {"OMPI_MCA_btl", other}}));
  CHECK(!accepted({tcp_by_loopback, {"OMPI_MCA_pml", "^ucx"}, {"OMPI_MCA_btl", "self,vader,tcp"}}));
  CHECK(!accepted({tcp_by_loopback}, false));
}

TEST_CASE("this host has a loopback interface") {
  const std::vector<Interface> here = network_interfaces();
  CHECK((here.empty() || std::ranges::any_of(here, &Interface::loopback)));
}
