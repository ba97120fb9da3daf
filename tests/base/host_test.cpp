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

TEST_CASE("the processor time of a control group is the least on the way from the top, in both versions of them") {
  const double no_limit = std::numeric_limits<double>::infinity();
  const auto quota = [](const char* mount, const char* groups,
                        const std::vector<std::pair<std::string, const char*>>& files) {
    const test::TemporaryFolder root;
    const auto put = [&](const std::string& file, const std::string& text) {
      std::filesystem::create_directories((root.path() / file).parent_path());
      std::ofstream(root.path() / file) << text << "\n";
    };
    put("proc/self/mountinfo", mount);
    put("proc/self/cgroup", groups);
    for (const auto& [file, text] : files) put("sys/fs/cgroup/" + file, text);
    return cpu_quota(root).cores;
  };
  const char* const version_2 = "35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
  CHECK(quota(version_2, "0::/job/task", {}) == no_limit);
  CHECK(quota(version_2, "0::/job/task", {{"job/cpu.max", "250000 100000"}, {"job/task/cpu.max", "max 100000"}}) == 2.5);
  CHECK(quota(version_2, "0::/job/task", {{"job/cpu.max", "250000 100000"}, {"job/task/cpu.max", "50000 100000"}}) == 0.5);
  CHECK(quota(version_2, "0::/job", {{"job/cpu.max", "250000 100000"}, {"job/task/cpu.max", "50000 100000"}}) == 2.5);
  // In a container, the process's group is outside of the mount.
  CHECK(quota("35 31 0:32 /docker/7f /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "0::/docker/17",
              {{"cpu.max", "200000 100000"}}) == 2);

  const char* const version_1 = "35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
  const char* const groups = "5:cpuset:/a\n4:cpuacct,cpu:/a\n1:name=systemd:/a";
  const char *const limit = "cpu,cpuacct/a/cpu.cfs_quota_us", *const period = "cpu,cpuacct/a/cpu.cfs_period_us";
  CHECK(quota(version_1, groups, {{limit, "-1"}, {period, "100000"}}) == no_limit);
  CHECK(quota(version_1, groups, {{limit, "300000"}, {period, "100000"}}) == 3);
}

TEST_CASE("ranks share cores if more of them use a set of cores than it has, or than the control group allows") {
  const std::size_t cores = allowed_cpus().size();
  const auto shared = [](std::size_t equal_ranks, std::size_t other_ranks, double quota) {
    return shares_cores(
        [&](std::int64_t mine) {
          std::vector<std::int64_t> all(equal_ranks, mine);
          all.insert(all.end(), other_ranks, mine + 1);
          return all;
        },
        {quota, ""});
  };
  CHECK_FALSE(shared(cores, 0, 1e9));
  CHECK(shared(cores + 1, 0, 1e9));
  CHECK_FALSE(shared(cores, 100, 1e9));  // the others use other cores, or are on another machine
  CHECK(shared(cores, 0, static_cast<double>(cores) - 0.5));
  CHECK_FALSE(shared(1, 100, 1));
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
