// Tests machine files of accelerator systems: the files that come with Chorale, and files with errors.
#include "src/base/system.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/base/error.hpp"
#include "src/base/machine_file.hpp"
#include "tests/catch.hpp"
#include "tests/text.hpp"

namespace chorale::test {
namespace {

// A valid machine file. `memory` is in line 6, `type` in line 12, `link` in line 18, `adapters` in line 22.
const std::string good = R"(schema = "chorale machine"
version = 1
machine = "a toy"
[accelerator]
name = "toy"
memory = 80e9
units = 10
bandwidth = 1e12
streamed = 0.8
start = 4e-6
[[accelerator.product]]
type = "bf16"
flops = 1e14
reached = 0.8
ramp = 160
[host]
accelerators = 8
link = 100e9
latency = 3e-6
[network]
# eight of them
adapters = 8
adapter = 10e9
latency = 5e-6
[software]
launch = 42e-6
attention = "unfused"
)";

std::string refusal_of(const std::string& text) {
  try {
    parse_machine(text, "toy.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a machine file of accelerators is read") {
  const Machine machine = parse_machine(good, "toy.toml");
  REQUIRE(machine.system);
  const System& system = *machine.system;
  CHECK((system.accelerator.units == 10 && system.accelerator.products.at(0).ramp == 160));
  CHECK((system.host.link == 100e9 && system.network.adapters == 8 && system.network.collective == 1));
  CHECK(origin_of(system) == "toy.toml, not calibrated: its values were stated, not measured here");
  CHECK((system.host.file_read == 0 && system.host.file_write == 0));
  const Machine with_disks =
      parse_machine(test::replaced(good, "link = 100e9", "link = 100e9\nfile_read = 20e9\nfile_write = 10e9"), "toy.toml");
  CHECK((with_disks.system->host.file_read == 20e9 && with_disks.system->host.file_write == 10e9));
  CHECK((system.software.launch == 42e-6 && !system.software.fused_attention && system.software.overlaps_calls));
}

TEST_CASE("an uplink carries the adapters of its hosts, divided by the oversubscription") {
  CHECK(!parse_machine(good, "toy.toml").system->network.has_switches());
  const std::string text = test::replaced(good, "adapters = 8\n", "adapters = 8\nswitch_hosts = 4\noversubscription = 2\n");
  const NetworkLinks network = parse_machine(text, "toy.toml").system->network;
  CHECK(network.uplink() == 4 * 8 * 10e9 / 2);
  CHECK((network.switch_of(3) == 0 && network.switch_of(4) == 1));
}

TEST_CASE("impossible machines are refused in three lines that name the line and the key") {
  struct Broken {
    const char *from, *to, *says;
  };
  const Broken all[] = {
      {"bandwidth = 1e12", "bandwidth = 0", "toy.toml:8: accelerator.bandwidth is 0, but must be from 1"},
      {"link = 100e9", "link = 0", "toy.toml:18: host.link is 0"},
      {"adapter = 10e9", "adapter = -1", "toy.toml:23: network.adapter is -1"},
      {"reached = 0.8", "reached = 1.2", "toy.toml:14: [[accelerator.product]] reached is 1.2, but must be from 0.01 to 1"},
      {"streamed = 0.8", "streamed = \"most\"", "toy.toml:9: accelerator.streamed is not a number"},
      {"memory = 80e9\n", "", "toy.toml:4: accelerator.memory is missing"},
      {"[host]\naccelerators = 8\nlink = 100e9\nlatency = 3e-6\n", "", "host is missing"},
      {"[[accelerator.product]]\ntype = \"bf16\"\nflops = 1e14\nreached = 0.8\nramp = 160\n", "",
       "how fast does it multiply? Add [[accelerator.product]]"},
      {"units = 10", "units = 0", "toy.toml:7: accelerator.units is 0"},
      {"latency = 5e-6", "latency = 5000", "toy.toml:24: network.latency is 5000, but must be from 0 to 3600"},
      {"link = 100e9", "link = 100e9\nfile_write = 0", "toy.toml:19: host.file_write is 0, but must be from 1"},
      {"launch = 42e-6", "lunch = 42e-6", "toy.toml:26: software.lunch is no key of a machine file"},
      {"attention = \"unfused\"", "attention = \"flash\"",
       "toy.toml:27: software.attention is \"flash\", but must be one of: fused, unfused"},
      {"units = 10", "units = 10.5", "toy.toml:7: accelerator.units is not a whole number"},
      {"type = \"bf16\"", "type = \"bf61\"", "toy.toml:12: [[accelerator.product]] type is \"bf61\""},
      {"ramp = 160\n", "ramp = 160\n[[accelerator.product]]\ntype = \"bf16\"\nflops = 1e14\nreached = 1\n",
       "toy.toml:17: [[accelerator.product]] type is that of another"},
      {"adapters = 8", "adapters = nan", "toy.toml:22: network.adapters is nan"},
      {"adapters = 8\n", "adapters = 8\nswitch_hosts = 0\n", "toy.toml:23: network.switch_hosts is 0, but must be from 1"},
      {"adapters = 8\n", "adapters = 8\nswitch_hosts = 2.5\n", "toy.toml:23: network.switch_hosts is not a whole number"},
      {"adapters = 8\n", "adapters = 8\nswitch_hosts = 4\noversubscription = 0.5\n",
       "toy.toml:24: network.oversubscription is 0.5, but must be from 1 to 1000"},
      {"adapters = 8\n", "adapters = 8\noversubscription = 2\n", "toy.toml:23: network.oversubscription needs switch_hosts"},
  };
  for (const Broken& broken : all) {
    const std::string refusal = refusal_of(test::replaced(good, broken.from, broken.to));
    INFO(broken.to << "\n" << refusal);
    CHECK(refusal.find(broken.says) != std::string::npos);
    CHECK(std::ranges::count(refusal, '\n') == 2);
  }
}

TEST_CASE("the machine files that come with Chorale can be read, and say where their numbers come from") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("experiments/machines")) {
    INFO(entry.path());
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const Machine machine = parse_machine(text, entry.path().string());
    REQUIRE(machine.system);
    int sources = 0;
    for (std::size_t at = 0; (at = text.find("source = \"", at)) != std::string::npos; ++at) ++sources;
    CHECK(sources == 3 + static_cast<int>(machine.system->accelerator.products.size()));
    ++files;
  }
  CHECK(files >= 6);
}

}  // namespace chorale::test
