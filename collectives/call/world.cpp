// Creates groups: a world of all ranks on a backend, and smaller groups by `split`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "collectives/backends/backends.hpp"
#include "collectives/call/communicator_state.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/progress_hook.hpp"
#include "src/base/shared_cores.hpp"
#include "src/base/topology.hpp"

namespace chorale {
namespace {

template <class T>
Slice slice_of(std::vector<T>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), dtype_of<T>()};
}

}  // namespace

Selector selector_of_rank_0(const mpi::Runtime& runtime, const NamedText& tuning, const NamedText& machine) {
  const std::string tuned = mpi::broadcast(runtime.world(), tuning.text);
  const std::string measured = mpi::broadcast(runtime.world(), machine.text);
  return Selector(tuned.empty() ? TuningTable{} : parse_tuning(tuned, tuning.name),
                  measured.empty() ? Machine{} : parse_machine(measured, machine.name),
                  mpi::broadcast(runtime.world(), machine_signature()));
}

void end_rank(const std::exception& error, const World& world) {
  Flight* const flight = world.runtime ? world.runtime->flight() : nullptr;
  if (const int code = flight ? flight->lost_after(error) : 0) std::_Exit(code);  // the cause has already been reported
  fmt::print(stderr, "{}", describe(error, world.transport->rank(), world.transport->size()));
  std::fflush(nullptr);
  if (flight) flight->failed(exit_code_of(error));
  std::_Exit(exit_code_of(error));
}

World::World(std::shared_ptr<Transport> joined, Clock& its_clock, const WorldOptions& options)
    : clock(its_clock),
      part(options.part),
      runtime(options.runtime),
      transport(std::move(joined)),
      allocator(transport->memory(), ledger),
      device(!transport->reaches(false, false) ? std::shared_ptr<Memory>(transport, &transport->memory()) : nullptr),
      selector(std::make_shared<Selector>()),
      free_ids(1024, 1) {}

// If neither of two ranks waited for the other, their last calls can differ without an error. A rank that leaves a group
// sends a farewell message with its last call, and the rank that leaves last compares the calls. So this rank still receives
// farewells for 2 s. A rank that leaves after these 2 s receives this rank's farewell and detects the difference itself.
World::~World() {
  constexpr double patience_seconds = 2;
  if (std::uncaught_exceptions() > 0) return;
  try {
    const double until = clock.seconds() + patience_seconds;
    for (; !transport->all_left() && clock.seconds() < until; clock.sleep(1e-3)) run_progress_hooks();
  } catch (const std::exception& error) {
    end_rank(error, *this);
  }
}

Communicator open_world(std::shared_ptr<Transport> joined, Clock& clock, const WorldOptions& options) {
  const auto world = std::make_shared<World>(std::move(joined), clock, options);
  Transport& transport = *world->transport;
  const bool crowded = shares_cores([&](std::int64_t mine) { return transport.exchange(mine); });
  if (std::ranges::count(transport.exchange(crowded), 1) > 0) transport.share_cores();
  const auto engine = options.beside
                          ? options.beside->state().engine
                          : std::make_shared<ProgressEngine>(clock, crowded, time_limit(options.timeout_seconds),
                                                             options.runtime ? options.runtime->flight() : nullptr);
  world->free_ids[0] = 0;
  Membership membership{.members = std::vector<int>(static_cast<std::size_t>(transport.size())), .rank = transport.rank()};
  std::iota(membership.members.begin(), membership.members.end(), 0);
  membership.offers = transport.exchange(transport.offer(transport.size()));
  auto state = std::make_shared<Communicator::State>(engine, world, std::move(membership));
  if (options.topology) state->routes.hosts = hosts_among(options.topology->host_of);
  state->group = transport.join(state->membership);
  return Communicator(std::move(state));
}

Communicator open_world(const std::string& wanted, const mpi::Runtime& runtime, Clock& clock, const WorldOptions& options) {
  const Topology topology = options.topology ? *options.topology : topology_of(runtime);
  const std::string name = wanted == "auto" ? best_backend(runtime, topology) : wanted;
  const Backend& backend = backend_named(name);
  const Availability available = probe(backend);
  const auto without = mpi::ranks_where(runtime.world(), !available.works);
  if (!without.empty())
    throw Error(Exit::usage, fmt::format("backend {} is not available", name),
                available.works ? fmt::format("rank {} lacks it", without[0]) : available.detail,
                "`chorale info` lists the available backends");
  if (!backend.open)
    throw Error(Exit::usage, fmt::format("backend {} does not connect processes", name), backend.about,
                "use mpi, ucx or shm under mpirun");
  WorldOptions placed = options;
  placed.topology = &topology;
  placed.runtime = &runtime;
  Communicator world = open_world(backend.open(runtime), clock, placed);
  const auto of_rank_0 = [&](const std::filesystem::path& file) {
    return NamedText{runtime.rank() == 0 ? contents_of(file).value_or("") : "", file.string()};
  };
  world.go_by(std::make_shared<Selector>(
      selector_of_rank_0(runtime, of_rank_0(default_tuning_file()), of_rank_0(default_machine_file()))));
  return world;
}

Communicator Communicator::split(int color, int key) const {
  State& parent = state();
  const int p = size();
  World& world = *parent.world;
  std::vector<std::int64_t> wishes(2 * static_cast<std::size_t>(p)), wish{color, key};
  parent.run_ours({Collective::all_gather, slice_of(wish), slice_of(wishes)});
  std::vector<std::uint8_t> free_ids = world.free_ids;
  parent.run_ours({Collective::all_reduce, slice_of(free_ids), slice_of(free_ids), Redop::min});
  const auto id = std::find(free_ids.begin(), free_ids.end(), 1) - free_ids.begin();
  require(id < static_cast<std::ptrdiff_t>(free_ids.size()), "all {} group ids are in use: no group can be added",
          free_ids.size());

  std::vector<int> ranks;  // members of the new group, as ranks in the parent group
  for (int r = 0; r < p; ++r)
    if (color >= 0 && wishes[2 * static_cast<std::size_t>(r)] == color) ranks.push_back(r);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return wishes[2 * static_cast<std::size_t>(a) + 1] < wishes[2 * static_cast<std::size_t>(b) + 1];
  });
  std::vector<std::int64_t> offers(static_cast<std::size_t>(p)),
      offer{ranks.empty() ? 0 : world.transport->offer(static_cast<int>(ranks.size()))};
  parent.run_ours({Collective::all_gather, slice_of(offer), slice_of(offers)});
  if (ranks.empty()) return Communicator(nullptr);

  Membership membership{.id = static_cast<std::uint32_t>(id)};
  world.free_ids[static_cast<std::size_t>(id)] = 0;
  for (const int r : ranks) {
    if (r == rank()) membership.rank = static_cast<int>(membership.members.size());
    membership.members.push_back(parent.membership.members[static_cast<std::size_t>(r)]);
    membership.offers.push_back(offers[static_cast<std::size_t>(r)]);
  }
  auto state = std::make_shared<State>(parent.engine, parent.world, std::move(membership));
  state->routes.chosen = parent.routes.chosen;
  state->routes.check = parent.routes.check;
  state->routes.hosts = hosts_among(ranks, parent.routes.hosts);
  state->group = world.transport->join(state->membership);
  return Communicator(std::move(state));
}

}  // namespace chorale
