#include "parallel/mesh/worlds.hpp"

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "src/base/error.hpp"

namespace chorale {

ByAxis resolved(ByAxis backends, bool on_device, const Layout& layout, const mpi::Runtime& runtime) {
  const Topology topology = topology_of(runtime);
  const std::string widest = best_backend(runtime, topology, on_device);
  const Topology alone = Topology::of_one_host(runtime.size());
  const std::string nearest = topology.hosts() > 1 ? best_backend(runtime, alone, on_device) : widest;
  return chosen_backends(std::move(backends), layout, topology, nearest, widest);
}

Worlds::Worlds(const ByAxis& backends, const mpi::Runtime& runtime, Clock& clock, double timeout_seconds)
    : backends_(backends), topology_(topology_of(runtime)) {
  const std::string& widest = choice_for(backends, "world");
  if (topology_.hosts() > 1 && backend_named(widest).one_host)
    usage_error(fmt::format("{} connects the ranks of one host", widest), "the hosts have ranks " + topology_.text(),
                "use --backend auto, or name it only for axes within a host: --backend ucx,tp=" + widest);
  std::shared_ptr<const Selector> same_choices;
  const auto open = [&](const std::string& backend) {
    if (worlds_.contains(backend)) return;
    WorldOptions options{.timeout_seconds = timeout_seconds, .beside = worlds_.empty() ? nullptr : &worlds_.begin()->second};
    if (topology_.hosts() > 1 && backend_named(backend).one_host)
      options.part = std::make_shared<mpi::Runtime>(runtime, topology_.host_of[static_cast<std::size_t>(runtime.rank())]);
    if (!options.part) options.topology = &topology_;
    Communicator& world =
        worlds_.emplace(backend, open_world(backend, options.part ? *options.part : runtime, clock, options)).first->second;
    if (!same_choices) same_choices = world.selector();
    world.go_by(same_choices);
  };
  open(widest);
  for (const auto& [axis, backend] : backends) open(backend);
}

Worlds::Worlds(Communicator world) : backends_({{"", world.backend()}}), topology_(Topology::of_one_host(world.size())) {
  worlds_.emplace(backends_.begin()->second, std::move(world));
}

const Communicator& Worlds::whole() const {
  const auto joins_all = [&](const auto& world) { return topology_.hosts() <= 1 || !backend_named(world.first).one_host; };
  return std::find_if(worlds_.begin(), worlds_.end(), joins_all)->second;
}

const Communicator& Worlds::for_axis(const std::string& axis) const {
  const auto found = worlds_.find(choice_for(backends_, axis));
  return found == worlds_.end() ? whole() : found->second;
}

void Worlds::use_device(const std::shared_ptr<Memory>& device) {
  device_ = device;
  for (auto& [backend, world] : worlds_) world.use_device(device);
}

// Memory that peers can map (shm) is preferred to host memory that other backends provide.
const Communicator* Worlds::nearest() const {
  const Communicator* found = nullptr;
  for (const auto& [backend, world] : worlds_) {
    const bool lends_there = world.allocator().device().is_host() == !device_;
    if (lends_there && (!found || backend_named(world.backend()).maps_memory)) found = &world;
  }
  return found;
}

Memory& Worlds::memory() const {
  const Communicator* const world = nearest();
  return world ? world->allocator().memory() : device_ ? *device_ : *host_;
}

std::string Worlds::about_memory() const {
  const Communicator* const world = nearest();
  return world ? world->transport().about_memory() : "";
}

std::shared_ptr<const Selector> Worlds::selector() const { return whole().selector(); }

Worlds Worlds::split(int color) const {
  std::vector<std::int64_t> mine{color}, colors(static_cast<std::size_t>(size()));
  Communicator all = whole().split(0, rank());
  all.all_gather({mine.data(), 1, DType::i64}, {colors.data(), size(), DType::i64});
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (colors[static_cast<std::size_t>(r)] == color) ranks.push_back(r);
  Worlds part;
  part.backends_ = backends_;
  part.topology_ = topology_.part(ranks);
  part.device_ = device_;
  for (const auto& [backend, world] : worlds_) part.worlds_.emplace(backend, world.split(color, world.rank()));
  return part;
}

}  // namespace chorale
