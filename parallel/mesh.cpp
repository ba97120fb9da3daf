#include "parallel/mesh.hpp"

#include <array>

#include "collectives/backends/backends.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

// Each axis: its name, this rank's place along it, its size, and which of all such groups this one is.
struct Line {
  const char* name;
  std::int64_t rank, size, group;
};

std::array<Line, 5> lines_of(const Layout& l, std::int64_t rank) {
  const std::int64_t shard = rank % l.tensor, replica = rank / l.tensor % l.data, stage = rank / (l.tensor * l.data);
  const bool first = stage == 0, end = l.pipeline > 1 && (first || stage + 1 == l.pipeline);
  const std::int64_t place = replica * l.tensor + shard, all = l.tensor * l.data;
  return {{{"dp", replica, l.data, stage * l.tensor + shard},
           {"tp", shard, l.tensor, stage * l.data + replica},
           {"pp", stage, l.pipeline, place},
           {"ends", end && !first, end ? 2 : 1, end ? place : all * stage + place},
           {"world", rank, l.ranks(), 0}}};
}

}  // namespace

const std::string& choice_for(const ByAxis& choices, const std::string& axis) {
  static const std::string nothing;
  const auto named = choices.find(axis == "ends" ? "pp" : axis), other = choices.find("");
  return named != choices.end() ? named->second : other != choices.end() ? other->second : nothing;
}

std::string to_string(const ByAxis& choices) {
  std::string words;
  for (const auto& [axis, choice] : choices)
    words += (words.empty() ? "" : ",") + (axis.empty() ? choice : axis + "=" + choice);
  return words;
}

Worlds::Worlds(const ByAxis& backends, const mpi::Runtime& runtime, Clock& clock) : backends_(backends) {
  for (const auto& [axis, backend] : backends)
    if (!worlds_.contains(backend))
      worlds_.emplace(backend,
                      open_world(backend, runtime, clock, {.beside = worlds_.empty() ? nullptr : &worlds_.begin()->second}));
}

Worlds::Worlds(Communicator world) : backends_({{"", world.backend()}}) {
  worlds_.emplace(backends_.begin()->second, std::move(world));
}

const Communicator& Worlds::for_axis(const std::string& axis) const {
  const auto found = worlds_.find(choice_for(backends_, axis));
  return found == worlds_.end() ? worlds_.begin()->second : found->second;
}

void Worlds::use_device(const std::shared_ptr<Memory>& device) {
  device_ = device;
  for (auto& [backend, world] : worlds_) world.use_device(device);
}

// Mapped memory before what other backends lend of the host's.
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

std::shared_ptr<const Selector> Worlds::selector() const { return worlds_.begin()->second.selector(); }

Worlds Worlds::split(int color) const {
  Worlds part;
  part.backends_ = backends_;
  part.device_ = device_;
  for (const auto& [backend, world] : worlds_) part.worlds_.emplace(backend, world.split(color, world.rank()));
  return part;
}

Mesh::Mesh(const Layout& layout) : layout_(layout) {
  require(layout.ranks() == 1, "{} has {} ranks, and this is one", to_string(layout), layout.ranks());
  for (const Line& line : lines_of(layout_, 0))
    axes_.push_back(std::make_unique<Axis>(line.name, 0, 1, "", "", nullptr, *time_));
}

Mesh::Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms) : layout_(layout) {
  for (const char* name : {"dp", "tp", "pp", "ends", "world"}) {
    const Communicator& world = worlds.for_axis(name);
    require(world.size() == layout.ranks(), "{} has {} ranks and the world {}", to_string(layout), layout.ranks(),
            world.size());
    for (const Line& line : lines_of(layout, world.rank())) {
      if (std::string(line.name) != name) continue;
      Communicator group = world.split(static_cast<int>(line.group), static_cast<int>(line.rank));
      const std::string& algorithm = choice_for(algorithms, name);
      if (!algorithm.empty()) group.choose(algorithm);
      axes_.push_back(std::make_unique<Axis>(name, std::move(group), *time_));
    }
  }
}

Mesh Mesh::pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                     std::shared_ptr<const Selector> selector) {
  Mesh mesh;
  mesh.layout_ = layout;
  mesh.axes_.clear();
  for (const Line& line : lines_of(layout, rank))
    mesh.axes_.push_back(std::make_unique<Axis>(line.name, static_cast<int>(line.rank), static_cast<int>(line.size),
                                                choice_for(backends, line.name), choice_for(algorithms, line.name), selector,
                                                *mesh.time_));
  return mesh;
}

Accounts accounts_of(const Mesh& mesh) {
  Accounts accounts;
  for (const auto& axis : mesh.axes()) accounts[axis->name()] = axis->account();
  return accounts;
}

void clear_accounts(const Mesh& mesh) {
  for (const auto& axis : mesh.axes()) axis->clear_account();
}

}  // namespace chorale
