// Mapped memory between the ranks of one host. The probe tries what the backend needs: it creates an arena (memory in a
// memfd), maps it again as a peer would, and checks that both mappings show the same data. Whether a rank may read its
// neighbor's heap cannot be tried alone. The probe reads its own process by process_vm_readv, and Yama's ptrace_scope tells
// whether the kernel also allows this for other processes.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "src/base/descriptor.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/polling_barrier.hpp"
#include "src/base/text.hpp"
#include "src/base/topology.hpp"
#include "src/memory/arena.hpp"

namespace chorale {
namespace {

using namespace mapped;

std::string try_arena() {
  try {
    const Arena arena(1 << 16);
    const Mapping again = Arena::of_process(getpid(), arena.file(), 1 << 16);
    *arena.mapping().start() = std::byte{1};
    return *again.start() == std::byte{1} ? "" : "two mappings of the same memory show different contents";
  } catch (const Error& error) {
    return error.what();
  }
}

// With ptrace_scope 1, only a parent may read its child processes, unless the target allows more by prctl. Our ranks do.
Availability direct_reads() {
  char from = 'x', to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
    return {false, fmt::format("no process_vm_readv ({})", std::strerror(errno))};
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") return {true, "process_vm_readv"};
  if (scope == "1") return {true, "process_vm_readv after prctl"};
  return {false, "no process_vm_readv (ptrace_scope " + scope + ")"};
}

// Peers map a rank's arena and find data in it by offset. Memory outside the arena is ordinary: only the kernel can read it
// for a peer.
class SharedReach final : public Reach {
 public:
  // Reserves as much address space as the machine has memory; untouched pages cost nothing.
  SharedReach(const mpi::Runtime& runtime, bool can_read)
      : arena_(memory_bytes()), allocator_(arena_, ledger_), can_read_(can_read), rank_(runtime.rank()) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // lets peers read this process; has no effect without Yama
    const std::int64_t mine[3] = {getpid(), arena_.file(), arena_.mapping().bytes()};
    std::vector<std::int64_t> all(3 * static_cast<std::size_t>(runtime.size()));
    mpi::polling_barrier(runtime.world());
    mpi::check(PMPI_Allgather(mine, 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, runtime.world()));
    for (int r = 0; r < runtime.size(); ++r) {
      const auto* theirs = &all[3 * static_cast<std::size_t>(r)];
      processes_.push_back(static_cast<pid_t>(theirs[0]));
      views_.push_back(r == rank_ ? Mapping()
                                  : Arena::of_process(processes_.back(), static_cast<int>(theirs[1]), theirs[2]));
    }
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
  bool can_read() const override { return can_read_; }
  void read(int rank, Location from, void* into, std::int64_t bytes) const override {
    while (bytes > 0) {  // the kernel may copy less than requested
      const iovec local{into, static_cast<std::size_t>(bytes)};
      const iovec remote{std::bit_cast<void*>(from), static_cast<std::size_t>(bytes)};
      const ssize_t got = process_vm_readv(processes_[static_cast<std::size_t>(rank)], &local, 1, &remote, 1, 0);
      if (got <= 0)
        throw Error(Exit::runtime, fmt::format("rank {}'s memory cannot be read", rank),
                    fmt::format("process_vm_readv of {} bytes: {}", bytes, std::strerror(errno)),
                    "check that this rank is still alive, or allocate the buffers in symmetric memory");
      into = static_cast<std::byte*>(into) + got;
      from += static_cast<Location>(got);
      bytes -= got;
    }
  }
  Allocator& memory() override { return allocator_; }

 private:
  Arena arena_;
  Ledger ledger_;
  Allocator allocator_;
  bool can_read_;
  int rank_;
  std::vector<pid_t> processes_;
  std::vector<Mapping> views_;
};

class SharedTransport final : public MappedTransport {
 public:
  SharedTransport(const mpi::Runtime& runtime, bool can_read)
      : MappedTransport(std::make_shared<Boards>(std::make_unique<SharedReach>(runtime, can_read))), runtime_(runtime) {}
  const char* name() const override { return "shm"; }
  int rank() const override { return runtime_.rank(); }
  int size() const override { return runtime_.size(); }
  std::vector<std::int64_t> exchange(std::int64_t mine) override { return mpi::all_gather(runtime_.world(), mine); }

 private:
  const mpi::Runtime& runtime_;
};

}  // namespace

Availability probe_shm() {
  if (const std::string why = try_arena(); !why.empty()) return {false, why};
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return {true,
          fmt::format("{} of memory, {}, huge pages {}", human_bytes(memory_bytes()), direct_reads().detail,
                      huge.empty() ? "unknown" : huge.substr(huge.find('[') + 1, huge.find(']') - huge.find('[') - 1))};
}

std::unique_ptr<Transport> open_shm(const mpi::Runtime& runtime) {
  if (const Topology topology = topology_of(runtime); topology.hosts() > 1)
    throw Error(Exit::usage, "shm connects the ranks of one host", "the hosts have ranks " + topology.text(),
                "use --backend ucx or mpi");
  // All ranks must act alike: if one rank may not read its peers' memory, no rank does.
  const bool all_can = mpi::ranks_where(runtime.world(), !direct_reads().works).empty();
  return std::make_unique<SharedTransport>(runtime, all_can);
}

}  // namespace chorale
