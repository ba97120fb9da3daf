// The backend mpi, which is always available, because the program is built with MPI. All messages of Chorale's schedules are
// sent on one duplicate of the world communicator, so a group needs no communicator for these messages. Each group has
// additional MPI communicators for MPI's own collectives.
#include "src/base/mpi.hpp"

#include "collectives/backends/backends.hpp"
#include "collectives/backends/cuda_aware.hpp"
#include "collectives/backends/message/group.hpp"
#include "collectives/backends/mpi_messenger.hpp"
#include "collectives/backends/mpi_native.hpp"
#include "src/base/polling_barrier.hpp"

namespace chorale {
namespace {

// State that all groups of the world share.
struct MpiWorld {
  explicit MpiWorld(const mpi::Runtime& r)
      : runtime(r),
        comm(mpi::duplicate(r.world())),
        control(r.world()),
        takes_devices(mpi::ranks_where(r.world(), !is_cuda_aware("mpi", mpi_says_cuda_aware())).empty()) {}
  // After an error, this communicator is never freed, because unreceived messages must not reach a later communicator (see
  // ~MpiControlChannel).
  ~MpiWorld() {
    if (gave_up) comm.release();
  }
  const mpi::Runtime& runtime;
  mpi::Comm comm;
  ControlEndpoint control;
  MpiTags tags;
  const bool takes_devices;  // whether the MPI libraries of all ranks accept device pointers
  HostMemory memory;
  Ledger ledger;  // counts the memory that operations allocate
  std::optional<DirectDevice> device;
  bool gave_up = false;
};

class MpiGroup final : public AgreedGroup<MpiGroup, MpiWorld> {
 public:
  // A pair needs no communicator, because pairs run no native collectives.
  MpiGroup(MpiWorld& world, const Membership& membership) : AgreedGroup(world, membership) {
    if (!(membership.id & pair_bit)) make_communicators();
  }

  std::unique_ptr<Operation> prepare(const Plan& plan) override {
    agreement_.enter(plan);
    const Allocator workspace(plan.on_device ? *world_.device.value().memory : world_.memory, world_.ledger);
    if (!plan.algorithm) return mpi_native(*native_, agreement_, plan, workspace);
    return over_messages<MpiMessenger>(agreement_, plan, workspace, world_.device, world_.comm.get(), world_.tags);
  }

  void poison(const std::string& why) noexcept override {
    world_.gave_up = true;
    if (native_) native_->never_free();
    AgreedGroup::poison(why);
  }

 private:
  struct GroupTraits {
    using type = MPI_Group;
    static type none() { return MPI_GROUP_NULL; }
    static void close(type group) noexcept { PMPI_Group_free(&group); }
  };

  // Every member calls this function while the group is created. Creating communicators only at the first native call could
  // deadlock, because a member might still wait for another member in an earlier call.
  void make_communicators() {
    MPI_Group all = MPI_GROUP_NULL, mine = MPI_GROUP_NULL;
    mpi::check(PMPI_Comm_group(world_.comm.get(), &all));
    const Handle<GroupTraits> own_all(all);
    const auto& members = agreement_.group().members;
    mpi::check(PMPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &mine));
    const Handle<GroupTraits> own_mine(mine);
    const auto make = [&] {
      MPI_Comm made = MPI_COMM_NULL;
      mpi::check(PMPI_Comm_create_group(world_.comm.get(), mine, static_cast<int>(agreement_.group().id), &made));
      mpi::check(PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
      return mpi::Comm(made);
    };
    mpi::Comm calls = make();
    native_.emplace(std::move(calls), make());
  }

  std::optional<MpiNativeCalls> native_;  // empty for a pair
};

class MpiTransport final : public MessageTransport<MpiWorld, MpiGroup> {
 public:
  using MessageTransport::MessageTransport;
  const char* name() const override { return "mpi"; }
  bool has_native(Collective) const override { return true; }
  // MPI's own collectives do not get device buffers. The nonblocking collectives of Open MPI 4 and 5 reduce on the host, and
  // blocking collectives would delay other calls.
  bool reaches(bool on_device, bool native) const override { return !on_device || (world_.device && !native); }
  void use_device(const std::shared_ptr<Memory>& memory) override {
    world_.device = direct_device(world_.takes_devices, memory);
  }
  Memory& memory() override { return world_.memory; }
};

}  // namespace

Availability probe_mpi() {
  return {true, mpi::library_name() + "; " + device_buffers_by(is_cuda_aware("mpi", mpi_says_cuda_aware()))};
}

std::unique_ptr<Transport> open_mpi(const mpi::Runtime& runtime) { return std::make_unique<MpiTransport>(runtime); }

}  // namespace chorale
