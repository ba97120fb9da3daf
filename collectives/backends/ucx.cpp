// The backends ucx and shm+ucx, which use UCP's tag matching. shm+ucx sends messages within a host through shared memory
// (near/). Each rank has one UCP worker; endpoints are created from worker addresses that the ranks exchange over MPI. The
// probe creates a context and a worker, as a run does, because the kernel or a container might deny UCX all transports.
#include <fmt/format.h>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/cuda_aware.hpp"
#include "collectives/backends/message/group.hpp"
#include "collectives/backends/near/messenger.hpp"
#include "collectives/backends/ucx_messenger.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/base/topology.hpp"

namespace chorale {

Availability probe_shm();

namespace {

struct UcxWorld {
  explicit UcxWorld(const mpi::Runtime& r, std::unique_ptr<near::Post> its_post = nullptr)
      : runtime(r),
        control(r.world()),
        endpoints(r),
        post(std::move(its_post)),
        takes_devices(
            mpi::ranks_where(r.world(), !is_cuda_aware("ucx", ucx::says_cuda_aware(endpoints.context()))).empty()) {
    require(r.size() <= 4096, "the backend ucx has 12 tag bits for the source: {} ranks are more than 4096", r.size());
  }
  const mpi::Runtime& runtime;
  ControlEndpoint control;
  ucx::Endpoints endpoints;
  const std::unique_ptr<near::Post> post;  // sends messages within the host; null for the backend ucx
  const bool takes_devices;                // whether the UCX libraries of all ranks accept device pointers
  Memory& memory() { return post ? post->reach().memory().memory() : host; }
  HostMemory host;
  Ledger ledger;  // counts the memory that operations allocate
  std::optional<DirectDevice> device;
};

class UcxGroup final : public AgreedGroup<UcxGroup, UcxWorld> {
 public:
  using AgreedGroup::AgreedGroup;
  std::unique_ptr<Operation> prepare(const Plan& plan) override {
    require(plan.algorithm != nullptr, "UCX has no native collectives: {} cannot run as \"native\"", plan.words);
    agreement_.enter(plan);
    const Allocator workspace(plan.on_device ? *world_.device.value().memory : world_.memory(), world_.ledger);
    if (world_.post && !plan.on_device)
      return over_messages<near::NearAndFar<ucx::UcxMessenger>>(agreement_, plan, workspace, world_.device, *world_.post,
                                                                world_.endpoints);
    return over_messages<ucx::UcxMessenger>(agreement_, plan, workspace, world_.device, world_.endpoints);
  }
};

class UcxTransport final : public MessageTransport<UcxWorld, UcxGroup> {
 public:
  using MessageTransport::MessageTransport;
  const char* name() const override { return world_.post ? "shm+ucx" : "ucx"; }
  bool reaches(bool on_device, bool) const override { return !on_device || world_.device; }
  void use_device(const std::shared_ptr<Memory>& memory) override {
    world_.device = direct_device(world_.takes_devices, memory);
  }
  Memory& memory() override { return world_.memory(); }
};

}  // namespace

std::string ucx_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("UCX {}.{}.{}", major, minor, release);
}

Availability probe_ucx() {
  const std::string version = ucx_version();
  try {
    const ucx::Context context = ucx::open_context(1);
    const ucx::Worker worker = ucx::open_worker(context.get());
    return {true, version + "; " + device_buffers_by(is_cuda_aware("ucx", ucx::says_cuda_aware(context.get())))};
  } catch (const Error& error) {
    if (error.exit() == Exit::usage) throw;  // UCX itself works, but a setting is wrong
    return {false, fmt::format("{}: {}", version, on_one_line(error.what()))};
  }
}

Availability probe_shm_ucx() {
  const Availability near = probe_shm(), far = probe_ucx();
  if (!near.works || !far.works) return near.works ? far : near;
  return {true, "on a host: " + near.detail + "; between hosts: " + far.detail};
}

std::unique_ptr<Transport> open_ucx(const mpi::Runtime& runtime) { return std::make_unique<UcxTransport>(runtime); }

std::unique_ptr<Transport> open_shm_ucx(const mpi::Runtime& runtime) {
  return std::make_unique<UcxTransport>(runtime, std::make_unique<near::Post>(runtime, topology_of(runtime)));
}

}  // namespace chorale
