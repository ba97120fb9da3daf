// Mapped memory between the ranks of one host. What it needs is tried, not assumed: a segment that can be created, sized,
// mapped and touched. Whether a rank may read its neighbour's heap directly is inferred: the call works on ourselves, and Yama's
// scope says for whom else.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collectives/backends/backends.hpp"
#include "src/base/descriptor.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

std::string try_segment() {
  constexpr off_t bytes = 1 << 16;
  const std::string name = fmt::format("/chorale-{}-{}-probe", getuid(), getpid());
  const Descriptor segment(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!segment) return fmt::format("shm_open: {}", std::strerror(errno));
  shm_unlink(name.c_str());
  if (const int error = posix_fallocate(segment.get(), 0, bytes); error != 0)
    return fmt::format("/dev/shm has no room: {}", std::strerror(error));
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (place == MAP_FAILED) return fmt::format("mmap: {}", std::strerror(errno));
  std::memset(place, 1, bytes);
  munmap(place, bytes);
  return "";
}

// Yama's scope 1 lets only a parent read its children, unless the target allows it by prctl, which we can do.
std::string direct_reads() {
  char from = 'x', to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
    return fmt::format("no process_vm_readv ({})", std::strerror(errno));
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") return "process_vm_readv";
  return scope == "1" ? "process_vm_readv after prctl" : "no process_vm_readv (ptrace_scope " + scope + ")";
}

}  // namespace

Availability probe_shm() {
  if (const std::string why = try_segment(); !why.empty()) return {false, why};
  struct statvfs room {};
  statvfs("/dev/shm", &room);
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return {true,
          fmt::format("{} free in /dev/shm, {}, huge pages {}",
                      human_bytes(static_cast<std::int64_t>(room.f_bavail * room.f_frsize)), direct_reads(),
                      huge.empty() ? "unknown" : huge.substr(huge.find('[') + 1, huge.find(']') - huge.find('[') - 1))};
}

}  // namespace chorale
