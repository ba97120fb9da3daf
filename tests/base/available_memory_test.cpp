#include "src/base/available_memory.hpp"

#include <fstream>

#include "src/base/host.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using chorale::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
constexpr std::int64_t mib = 1 << 20;

// Emulates a machine by files that stand in for /proc and /sys. 100 MiB of memory are available on the emulated machine,
// unless a cgroup has a lower limit.
class FakeMachine {
 public:
  FakeMachine() { write("proc/meminfo", "MemTotal:  409600 kB\nMemFree:   51200 kB\nMemAvailable:  102400 kB\n"); }

  FakeMachine& write(const fs::path& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    std::ofstream(folder_.path() / file) << text;
    return *this;
  }
  // In cgroup version 2, a limit is a number of bytes or "max".
  FakeMachine& group2(const fs::path& group, const std::string& limit, std::int64_t use, std::int64_t files = 0) {
    write(group / "memory.max", limit + "\n").write(group / "memory.current", std::to_string(use) + "\n");
    return write(group / "memory.stat", "anon 7\nfile 999999999\ninactive_file " + std::to_string(files / 2) +
                                            "\nactive_file " + std::to_string(files - files / 2) + "\n");
  }
  FakeMachine& group1(const fs::path& group, std::int64_t limit, std::int64_t use, std::int64_t files = 0) {
    write(group / "memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(group / "memory.usage_in_bytes", std::to_string(use) + "\n");
    return write(group / "memory.stat",
                 "inactive_file 1\nactive_file 1\ntotal_inactive_file " + std::to_string(files) + "\ntotal_active_file 0\n");
  }
  std::int64_t available() const { return available_memory(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* mounts2 =
    "23 1 0:20 / /proc rw - proc proc rw\n40 23 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
constexpr const char* mounts1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 none "
    "rw\n";

}  // namespace

TEST_CASE("without cgroups, a process may use what the machine has available") {
  CHECK(FakeMachine().available() == 100 * mib);
  CHECK(available_memory("/nowhere") == memory_bytes());
  CHECK((available_memory() > 0 && available_memory() <= memory_bytes()));
}

TEST_CASE("with cgroups of version 2, the tightest limit from the process's cgroup up to the root counts") {
  FakeMachine machine;
  machine.write("proc/self/mountinfo", mounts2).write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  const fs::path root = "sys/fs/cgroup";
  machine.group2(root / "slurm/job_7/step_0", "max", 30 * mib);
  CHECK(machine.available() == 100 * mib);
  machine.group2(root / "slurm/job_7", std::to_string(50 * mib), 35 * mib);
  CHECK(machine.available() == 15 * mib);
  machine.group2(root / "slurm/job_7", std::to_string(50 * mib), 35 * mib, 25 * mib);  // 25 of these 35 MiB are file pages
  CHECK(machine.available() == 40 * mib);
  machine.group2(root / "slurm", std::to_string(60 * mib), 54 * mib);
  CHECK(machine.available() == 6 * mib);
  machine.group2(root / "slurm/job_7/step_0", std::to_string(20 * mib), 22 * mib);  // the limit was lowered below the usage
  CHECK(machine.available() == 0);
  machine.group2(root / "slurm/job_8", std::to_string(mib), mib);  // siblings do not count
  machine.write("proc/self/cgroup", "0::/slurm\n");
  CHECK(machine.available() == 6 * mib);
}

TEST_CASE("a container sees its own cgroup as the root") {
  FakeMachine machine;
  machine.group2("sys/fs/cgroup", std::to_string(64 * mib), 24 * mib);
  machine.write("proc/self/mountinfo", mounts2);
  for (const char* own : {"0::/\n", "0::/../../other\n"}) {
    machine.write("proc/self/cgroup", own);
    CHECK(machine.available() == 40 * mib);
  }
  // Without a cgroup namespace, /proc/self/cgroup contains the cgroup's full path, and /proc/self/mountinfo names the
  // mounted cgroup.
  machine.write("proc/self/cgroup", "0::/docker/7f/inner\n");
  machine.write("proc/self/mountinfo", "40 23 0:30 /docker/7f /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  CHECK(machine.available() == 40 * mib);
  machine.group2("sys/fs/cgroup/inner", std::to_string(9 * mib), mib);
  CHECK(machine.available() == 8 * mib);
}

TEST_CASE("cgroups of version 1 count if a version 2 beside them has no memory controller") {
  FakeMachine machine;
  machine.write("proc/self/mountinfo", mounts1);
  machine.write("proc/self/cgroup", "9:cpu,cpuacct:/elsewhere\n4:memory:/job/step\n0::/unified\n");
  const fs::path root = "sys/fs/cgroup/memory";
  machine.group1(root, 9223372036854771712, 90 * mib).group1(root / "job/step", 9223372036854771712, mib);
  CHECK(machine.available() == 100 * mib);
  machine.group1(root / "job", 80 * mib, 60 * mib, 30 * mib);
  CHECK(machine.available() == 50 * mib);
  machine.group1("sys/fs/cgroup/memory/elsewhere", mib, mib).group1("sys/fs/cgroup/cpu/job", mib, mib);
  CHECK(machine.available() == 50 * mib);
  machine.write("proc/self/cgroup", "nonsense\n4:memory\n");
  machine.write("proc/self/mountinfo", "also nonsense - \n - cgroup\n");
  CHECK(machine.available() == 100 * mib);
}
