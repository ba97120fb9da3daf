// The backend shm: mapped memory between the ranks of one host. The backend's probe tries the required system calls. The
// probe creates an arena (a memfd) and maps the arena a second time, as a peer would. Then the probe checks that both
// mappings show the same data.
#include <fmt/format.h>
#include <unistd.h>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/shared_reach.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
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

class SharedTransport final : public MappedTransport {
 public:
  explicit SharedTransport(const mpi::Runtime& runtime)
      : MappedTransport(std::make_shared<FlagPages>(open_shared_reach(runtime))), runtime_(runtime) {}
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
          fmt::format("{} of memory, {}, huge pages {}", human_bytes(memory_bytes()), kernel_copies().detail,
                      huge.empty() ? "unknown" : huge.substr(huge.find('[') + 1, huge.find(']') - huge.find('[') - 1))};
}

std::unique_ptr<Transport> open_shm(const mpi::Runtime& runtime) {
  if (const Topology topology = topology_of(runtime); topology.hosts() > 1)
    throw Error(Exit::usage, "shm connects the ranks of one host", "the hosts have ranks " + topology.text(),
                "use --backend ucx or mpi");
  return std::make_unique<SharedTransport>(runtime);
}

}  // namespace chorale
