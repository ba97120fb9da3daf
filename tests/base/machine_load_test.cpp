#include "src/base/machine_load.hpp"

#include <fstream>

#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

TEST_CASE("a reading sums the busy and the stolen time of all cores, and the bytes of all network interfaces") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "proc");
  //                                              user nice system idle wait irq softirq steal guest (in user)
  std::ofstream(folder / "proc/stat") << "cpu  1000  200    300 9000   50  10      40    70    33 0\ncpu0 1 2 3 4\n";
  std::ofstream(folder / "proc/loadavg") << "3.25 2.00 1.00 4/202 4711\n";
  std::filesystem::create_directory(folder / "proc/net");
  std::ofstream(folder / "proc/net/dev") << "Inter-|   Receive                            |  Transmit\n"
                                            " face |bytes    packets errs drop fifo frame |bytes    packets errs\n"
                                            "    lo: 1280 244 0 0 0 0 0 0 1280 244 0 0 0 0 0 0\n"
                                            "  eth0:3401000382 67588 0 0 0 0 0 0 2461786 33955 0 0 0 0 0 0\n"
                                            "  eth1: 18 1 0 0 0 0 0 0 14 1 0 0 0 0 0 0\n";
  const MachineReading reading = read_machine(VirtualClock(), folder.path());
  CHECK(reading.worked == Approx(15.5));  // the kernel counts CPU time in ticks of 0.01 s
  CHECK(reading.stolen == Approx(0.7));
  CHECK(reading.load == 3.25);
  CHECK(reading.bytes_in == 3401000400);
  CHECK(reading.bytes_out == 2461800);
  CHECK(reading.own > 0);
  const MachineReading nothing = read_machine(VirtualClock(), "/nowhere");
  CHECK((nothing.worked == 0 && nothing.stolen == 0 && nothing.load == 0 && nothing.bytes_in == 0));
}

TEST_CASE("the busy time between two readings, minus this rank's own, is charged to other programs") {
  const MachineReading before{.at = 100, .worked = 50, .stolen = 2, .own = 7, .load = 3.25, .bytes_out = 1e9, .bytes_in = 5};
  MachineReading after{.at = 110, .worked = 68, .stolen = 3, .own = 9, .bytes_out = 3e9, .bytes_in = 12};
  const OtherWork work = work_between(before, after, 4);
  CHECK(work.cores == Approx(1.6));
  CHECK(work.stolen == Approx(0.025));
  CHECK((work.bytes_out == 2e9 && work.bytes_in == 7));
  CHECK((work.load == 3.25 && work.of_cores == 4 && work.busy()));
  CHECK(work.text() ==
        "other programs use 1.6 of its 4 cores (load 3.2), the hypervisor takes 2 % of the machine's CPU time");
  after.own = 40;  // CPU times are rounded to ticks, so this process can seem to use more than the machine
  CHECK(work_between(before, after, 4).cores == 0);
  after.worked = 1e6;
  CHECK(work_between(before, after, 4).cores == 4);
  CHECK(work_between(before, before, 4).cores == 0);
}

TEST_CASE("a machine is busy if other programs use 0.25 cores and 2 % of all cores, or if 2 % of its time is stolen") {
  const auto busy = [](double cores, double stolen, int of_cores) {
    return OtherWork{.cores = cores, .stolen = stolen, .of_cores = of_cores}.busy();
  };
  CHECK((!busy(0.2, 0, 2) && busy(0.3, 0, 2)));
  CHECK((!busy(1.2, 0, 64) && busy(1.3, 0, 64)));
  CHECK((!busy(0, 0.019, 2) && busy(0, 0.021, 2)));
  const OtherWork calm{.of_cores = 2, .host = "n0"}, used{.cores = 0.3, .load = 1.5, .of_cores = 2, .host = "n1"};
  CHECK(disturbance({calm, calm}).empty());
  CHECK(disturbance({calm, used}) ==
        "n1 was busy: other programs use 0.3 of its 2 cores (load 1.5); times vary more than on a quiet machine");
  CHECK(OtherWork{.cores = 0.3, .load = 1.5, .of_cores = 2}.text() == "other programs use 0.3 of its 2 cores (load 1.5)");
}

TEST_CASE("measuring the load takes look_seconds") {
  VirtualClock clock;
  const OtherWork work = work_now(clock);
  CHECK(clock.seconds() == look_seconds);
  CHECK((work.cores >= 0 && work.cores <= work.of_cores && work.of_cores >= 1 && work.stolen >= 0 && work.stolen <= 1));
}
