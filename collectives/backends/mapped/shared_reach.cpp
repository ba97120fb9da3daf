// Implements Reach (reach.hpp): ranks of one host access each other's memory. Each rank has an arena, which is memory that
// all other ranks map. If the system allows it, the kernel also copies from and to ordinary memory of another rank
// (process_vm_readv, process_vm_writev). Ranks try these calls on each other when they
// open the reach. A process alone (`chorale info`) tries them on itself, and reads Yama's ptrace_scope, which says whether
// the kernel allows the calls on other processes.
#include "collectives/backends/mapped/shared_reach.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/polling_barrier.hpp"
#include "src/base/spare_memory.hpp"
#include "src/base/text.hpp"
#include "src/memory/arena.hpp"

namespace chorale::mapped {
namespace {

// Returns the size of an arena in bytes. By default, an arena is as large as the machine's memory, because untouched pages
// cost nothing. If the address space is limited (ulimit -v), the address space of a rank must hold the arenas of all ranks,
// the rank's libraries and the rank's heap. With such a limit, the arenas together occupy at most half of F, where F is the
// minimum over all ranks of the free address space.
std::int64_t arena_bytes(const mpi::Runtime& host) {
  constexpr std::int64_t fewest = 16 << 20;
  const std::int64_t left = free_addresses(), each = left < 0 ? memory_bytes() : left / 2 / host.size();
  const std::vector<std::int64_t> all = mpi::all_gather(host.world(), std::min(each, memory_bytes()));
  const std::int64_t least = *std::ranges::min_element(all);
  if (least < fewest)
    throw Error(Exit::runtime, "there are too few addresses for shared memory",
                fmt::format("each of the {} ranks of this host could get only {} of shared memory; at least {} are needed",
                            host.size(), human_bytes(least), human_bytes(fewest)),
                "raise the limit of the address space (ulimit -v), or use the backend mpi");
  return least;
}

// Whether the kernel copies from and to the byte at this address of another process.
bool can_copy(pid_t process, std::int64_t address) {
  char byte = 0;
  const iovec local{&byte, 1}, remote{std::bit_cast<void*>(address), 1};
  return process_vm_readv(process, &local, 1, &remote, 1, 0) == 1 &&
         process_vm_writev(process, &local, 1, &remote, 1, 0) == 1;
}

// Peers map a rank's arena and find data in the arena by offset. Memory outside the arena is ordinary memory. A peer can
// read ordinary memory only through the kernel.
class SharedReach final : public Reach {
 public:
  explicit SharedReach(const mpi::Runtime& runtime)
      : arena_(arena_bytes(runtime)), allocator_(arena_, ledger_), rank_(runtime.rank()) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // lets peers read this process's memory; has no effect if Yama is off
    const std::int64_t mine[] = {getpid(), arena_.file(), arena_.mapping().bytes(), std::bit_cast<std::int64_t>(&probe_)};
    constexpr int numbers = std::size(mine);
    std::vector<std::int64_t> all(std::size(mine) * static_cast<std::size_t>(runtime.size()));
    mpi::polling_barrier(runtime.world());
    mpi::complete([&](MPI_Request* done) {
      return PMPI_Iallgather(mine, numbers, MPI_INT64_T, all.data(), numbers, MPI_INT64_T, runtime.world(), done);
    });
    for (int r = 0; r < runtime.size(); ++r) {
      const auto* theirs = &all[std::size(mine) * static_cast<std::size_t>(r)];
      processes_.push_back(static_cast<pid_t>(theirs[0]));
      views_.push_back(r == rank_ ? Mapping()
                                  : Arena::of_process(processes_.back(), static_cast<int>(theirs[1]), theirs[2]));
    }
    // All ranks must use the same method. So if one rank cannot copy, no rank does.
    const std::size_t next = static_cast<std::size_t>((rank_ + 1) % runtime.size());
    const bool copies = kernel_copies().work && can_copy(processes_[next], all[std::size(mine) * next + 3]);
    has_kernel_copies_ = mpi::ranks_where(runtime.world(), !copies).empty();
  }

  Location locate(const void* mine) const override {
    if (!arena_.mapping().holds(mine)) return std::bit_cast<Location>(mine);
    return static_cast<Location>(arena_.offset_of(mine)) | is_mapped;
  }
  void* map(int rank, Location location) const override {
    if (!(location & is_mapped)) return nullptr;
    const Mapping& view = rank == rank_ ? arena_.mapping() : views_[static_cast<std::size_t>(rank)];
    const auto offset = static_cast<std::int64_t>(location & ~is_mapped);
    require(offset < view.bytes(), "rank {} has no byte {} in its shared memory of {}", rank, offset, view.bytes());
    return view.start() + offset;
  }
  bool has_kernel_copies() const override { return has_kernel_copies_; }
  void read(int rank, Location from, void* into, std::int64_t bytes) const override {
    kernel_copy(process_vm_readv, rank, static_cast<std::byte*>(into), from, bytes);
  }
  void write(int rank, Location into, const void* from, std::int64_t bytes) const override {
    kernel_copy(process_vm_writev, rank, static_cast<std::byte*>(const_cast<void*>(from)), into, bytes);
  }
  Allocator& memory() override { return allocator_; }

 private:
  using KernelCopy = decltype(process_vm_readv);
  void kernel_copy(KernelCopy* copy, int rank, std::byte* mine, Location theirs, std::int64_t bytes) const {
    while (bytes > 0) {  // the kernel can copy fewer bytes than requested
      const iovec local{mine, static_cast<std::size_t>(bytes)};
      const iovec remote{std::bit_cast<void*>(theirs), static_cast<std::size_t>(bytes)};
      const ssize_t copied = copy(processes_[static_cast<std::size_t>(rank)], &local, 1, &remote, 1, 0);
      if (copied <= 0)
        throw Consequence(
            fmt::format("rank {}'s memory cannot be accessed", rank),
            fmt::format("{} of {} bytes: {}", copy == process_vm_readv ? "process_vm_readv" : "process_vm_writev", bytes,
                        std::strerror(errno)),
            "check that this rank is still alive, or allocate the buffers in symmetric memory");
      mine += copied;
      theirs += static_cast<Location>(copied);
      bytes -= copied;
    }
  }

  Arena arena_;
  Ledger ledger_;
  Allocator allocator_;
  char probe_ = 0;  // other ranks read and write this byte to find out whether the kernel copies
  bool has_kernel_copies_ = false;
  int rank_;
  std::vector<pid_t> processes_;
  std::vector<Mapping> views_;
};

}  // namespace

// With ptrace_scope 1, a process may access only its child processes, unless the target process allows others by prctl.
// Chorale's ranks call prctl.
KernelCopies kernel_copies() {
  char from = 'x', to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
    return {false, fmt::format("no process_vm_readv ({})", std::strerror(errno))};
  if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != 1)
    return {false, fmt::format("no process_vm_writev ({})", std::strerror(errno))};
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") return {true, "process_vm_readv"};
  if (scope == "1") return {true, "process_vm_readv after prctl"};
  return {false, "no process_vm_readv (ptrace_scope " + scope + ")"};
}

std::unique_ptr<Reach> open_shared_reach(const mpi::Runtime& host) { return std::make_unique<SharedReach>(host); }

}  // namespace chorale::mapped
