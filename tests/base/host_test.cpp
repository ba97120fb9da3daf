#include "src/base/host.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "src/base/shared_cores.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

namespace chorale {

TEST_CASE("a process runs until it ends, not until its parent collects it") {
  CHECK(is_running(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // the child has ended and is a zombie
  CHECK_FALSE(is_running(child));
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(is_running(child));
}

TEST_CASE("the processor time of a control group is the least on the way up to the root, in both versions of them") {
  const test::TemporaryFolder root;
  const auto put = [&](const std::string& folder, const char* file, const char* text) {
    std::filesystem::create_directories(root / folder.c_str());
    std::ofstream(root / (folder + "/" + file).c_str()) << text << "\n";
  };
  const double unlimited = std::numeric_limits<double>::infinity();
  CHECK(cpu_quota("", root) == unlimited);
  CHECK(cpu_quota("0::/job/task\n", root) == unlimited);  // nothing is mounted
  put("job", "cpu.max", "250000 100000");
  put("job/task", "cpu.max", "max 100000");
  CHECK(cpu_quota("0::/job/task\n", root) == 2.5);
  put("job/task", "cpu.max", "50000 100000");
  CHECK(cpu_quota("0::/job/task\n", root) == 0.5);
  CHECK(cpu_quota("0::/job\n", root) == 2.5);
  put(".", "cpu.max", "200000 100000");  // the path outside of a container leads nowhere inside
  CHECK(cpu_quota("0::/docker/17\n", root) == 2);

  const std::string version_1 = "5:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/a\n";
  put("cpuset/a", "cpu.cfs_quota_us", "100000");
  put("cpuset/a", "cpu.cfs_period_us", "100000");
  CHECK(cpu_quota(version_1, root) == unlimited);
  put("cpu,cpuacct/a", "cpu.cfs_quota_us", "-1");
  put("cpu,cpuacct/a", "cpu.cfs_period_us", "100000");
  CHECK(cpu_quota(version_1, root) == unlimited);
  put("cpu,cpuacct/a", "cpu.cfs_quota_us", "300000");
  CHECK(cpu_quota(version_1, root) == 3);
}

TEST_CASE("a file is read whole, and a missing file or a folder is told from an empty file") {
  const test::TemporaryFolder folder;
  const std::string bytes("a\r\n\0b", 5);
  std::ofstream(folder / "full", std::ios::binary) << bytes;
  std::ofstream(folder / "empty").flush();
  CHECK(contents_of(folder / "full") == bytes);
  CHECK(contents_of(folder / "empty") == "");
  CHECK(!contents_of(folder / "missing"));
  CHECK(!contents_of(folder.path()));
  CHECK(!contents_of(""));
}

TEST_CASE("resident memory grows with pages that are written, and its peak remains") {
  constexpr std::int64_t many = 64 << 20;
  const ResidentMemory before = resident_memory();
  CHECK((before.bytes > 0 && before.peak_bytes > 0));
  // The pages come directly from the kernel, because malloc can return pages that an earlier test has written.
  void* const pages = mmap(nullptr, many, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  std::memset(pages, 'a', many);
  CHECK(resident_memory().bytes > before.bytes + many / 2);
  munmap(pages, many);
  CHECK(resident_memory().peak_bytes > before.bytes + many / 2);
}

}  // namespace chorale
