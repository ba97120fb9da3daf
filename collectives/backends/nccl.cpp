// The host code of the backend nccl. The host code decides which data each rank sends to which peer, and in which order. The
// CUDA plugin enqueues these messages on a CUDA stream. Only the plugin links NCCL.
//
//   start ─▶ [ waiting, in the order of the group's calls ] ─▶ enqueue, once NCCL has connected the group ─▶ over
//
// NCCL runs a group's calls in the order in which they were enqueued, so calls must be enqueued in the same order on all
// ranks. NCCL does not check that all ranks make the same call, so mismatched calls can complete with wrong results. To
// detect mismatched calls, rank r sends a control message that describes its call to rank r + 1 of the group. Control
// messages are sent over MPI (message/call_agreement.hpp). A call of rank r completes only after rank r has compared the
// call with the call of rank r − 1. The comparison takes no extra time, because the control message arrives before the
// device finishes. Control messages also report why a rank gave up, and distribute the id of a new communicator from the
// group's first rank.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <deque>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/message/device_sums.hpp"
#include "collectives/backends/message/group.hpp"
#include "collectives/backends/nccl_link.hpp"
#include "collectives/schedule/phases.hpp"
#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace {

struct NcclWorld {
  NcclWorld(const mpi::Runtime& r, std::unique_ptr<NcclDevice> d) : runtime(r), control(r.world()), device(std::move(d)) {}
  const mpi::Runtime& runtime;
  ControlEndpoint control;
  std::unique_ptr<NcclDevice> device;
};

class NcclOperation;

class NcclGroup final : public AgreedGroup<NcclGroup, NcclWorld> {
 public:
  NcclGroup(NcclWorld& world, const Membership& membership);
  std::unique_ptr<Operation> prepare(const Plan& plan) override;
  void poison(const std::string& why) noexcept override {
    AgreedGroup::poison(why);
    if (link_) link_->abort();
  }

  void add(NcclOperation* operation) { waiting_.push_back(operation); }
  void enqueue_all();
  NcclLink& link() { return *link_; }
  void tell_call(const Run& run);
  bool compared(const Run& run);  // false until the control message of rank r − 1 arrives; throws for mismatched calls

 private:
  bool connected();
  int size() const { return static_cast<int>(agreement_.group().members.size()); }
  int around(int steps) const { return modulo(agreement_.group().rank + steps, size()); }

  std::unique_ptr<NcclLink> link_;  // null until the communicator's id is known
  std::deque<NcclOperation*> waiting_;
};

class NcclOperation final : public Operation {
 public:
  NcclOperation(NcclGroup& group, const Plan& plan, CallWatch watch)
      : group_(group), plan_(plan), watch_(std::move(watch)) {}

  void start(const Run& run) override {
    run_ = run;
    is_started_ = is_enqueued_ = false;
    watch_.start(run);
    group_.tell_call(run);
    group_.add(this);
    group_.enqueue_all();
  }
  bool progress() override {
    if (!is_enqueued_) group_.enqueue_all();
    return is_enqueued_ && work_->over() && group_.compared(run_);
  }
  std::uint64_t moved() const override { return moved_; }
  void examine() override { watch_.examine(); }

  bool enqueue() {
    if (!work_) work_ = make();
    if (!is_started_) work_->start(run_.input, run_.output);
    is_started_ = true;
    is_enqueued_ = work_->enqueue();
    moved_ += is_enqueued_;
    return is_enqueued_;
  }

 private:
  std::unique_ptr<NcclWork> make() const {
    if (!plan_.algorithm) return group_.link().prepare_native(plan_);
    MessagePlan flat(plan_);
    require_few_addends(plan_, flat);
    return group_.link().prepare(plan_, std::move(flat), in_groups(schedules_of(plan_), plan_.problem.rank));
  }

  NcclGroup& group_;
  const Plan plan_;
  CallWatch watch_;
  std::unique_ptr<NcclWork> work_;  // created once the group is connected
  Run run_;
  bool is_started_ = false, is_enqueued_ = false;
  std::uint64_t moved_ = 0;
};

NcclGroup::NcclGroup(NcclWorld& world, const Membership& membership) : AgreedGroup(world, membership) {
  if (membership.rank != 0) return;
  const NcclId id = world.device->new_id();
  agreement_.tell({id.bytes, sizeof id.bytes});
  link_ = world.device->connect(id, 0, static_cast<int>(membership.members.size()));
}

std::unique_ptr<Operation> NcclGroup::prepare(const Plan& plan) {
  agreement_.enter(plan);
  CallWatch watch(agreement_, plan.signature, others_from(plan.problem.rank, plan.problem.size));
  return std::make_unique<NcclOperation>(*this, plan, std::move(watch));
}

bool NcclGroup::connected() {
  if (!link_) {
    NcclId id;
    if (!agreement_.heard({id.bytes, sizeof id.bytes})) return false;
    link_ = world_.device->connect(id, agreement_.group().rank, size());
  }
  return link_->ready();
}

void NcclGroup::tell_call(const Run& run) {
  if (run.history != 0 && size() > 1) agreement_.ask({around(1)}, run.sequence);
}

bool NcclGroup::compared(const Run& run) {
  if (run.history == 0 || size() == 1) return true;
  agreement_.examine();
  return agreement_.was_asked(around(-1), run.sequence);
}

void NcclGroup::enqueue_all() {
  if (waiting_.empty() || !connected()) return;
  while (!waiting_.empty() && waiting_.front()->enqueue()) waiting_.pop_front();
}

class NcclTransport final : public MessageTransport<NcclWorld, NcclGroup> {
 public:
  NcclTransport(const mpi::Runtime& runtime, std::unique_ptr<NcclDevice> device)
      : MessageTransport(runtime, std::move(device)) {
    NcclDevice& gpu = *world_.device;
    const auto without = mpi::ranks_where(runtime.world(), !gpu.registers());
    if (without.empty()) return;
    gpu.register_nothing();
    about_memory_ = fmt::format("not registered with NCCL, which cannot register memory of rank {}", without[0]);
  }
  const char* name() const override { return "nccl"; }
  // For all_to_all, gather and scatter, NCCL offers only grouped sends and receives, which Chorale's algorithm `direct` uses
  // too.
  bool has_native(Collective what) const override {
    return what != Collective::all_to_all && what != Collective::gather && what != Collective::scatter;
  }
  bool reaches(bool on_device, bool) const override { return on_device; }
  bool plans_for_all() const override { return true; }  // the groups of messages depend on the steps of all ranks
  Memory& memory() override { return world_.device->memory(); }
  std::string about_memory() const override { return about_memory_; }

 private:
  std::string about_memory_ = "registered with NCCL";
};

// Whether the CUDA plugin might find a device. Without a device, the plugin is not loaded. Loading the plugin also loads
// cuBLAS and NCCL, which then occupy 146 MB of memory.
bool devices_are_possible() { return std::getenv("CHORALE_CUDA_PLUGIN") || dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); }

}  // namespace

Availability probe_nccl() {
  if (built("without_cuda").empty() && !devices_are_possible()) return {false, "no NVIDIA driver on this machine"};
  const DevicePlugin plugin;
  std::string why_none;
  const auto devices = cuda_devices(plugin, &why_none);
  char text[256] = "";
  auto* probe = plugin.find<NcclProbeFunction>("chorale_nccl_probe");
  if (!plugin.loaded()) return {false, why_none};
  if (!probe) return {false, built("without_nccl")};
  if (probe(text) != 0) return {false, text};
  if (devices.empty()) return {false, fmt::format("{} is installed, but there is no device: {}", text, why_none)};
  return {true, fmt::format("{}, {} device{}; ranks that share one communicate over sockets: for tests, not for timing",
                            text, devices.size(), devices.size() == 1 ? "" : "s")};
}

// NCCL does not allow two ranks of the same host on the same device. So if ranks must share a device, each rank claims to be
// on a different host. NCCL then connects these ranks over the loopback interface.
std::unique_ptr<Transport> open_nccl(const mpi::Runtime& runtime) {
  const DevicePlugin plugin;
  std::string why_none;
  const auto devices = cuda_devices(plugin, &why_none);
  auto* make = plugin.find<NcclDeviceFunction>("chorale_nccl_device");
  if (devices.empty() || !make) usage_error("no device for NCCL here", why_none, "use --backend shm, ucx or mpi");
  const DeviceShare share = share_of_devices(runtime, devices);
  if (share.crowded()) {
    setenv("NCCL_HOSTID", fmt::format("{}-{}", host_name(), runtime.rank()).c_str(), 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  return std::make_unique<NcclTransport>(runtime, std::unique_ptr<NcclDevice>(make(share.index())));
}

}  // namespace chorale
