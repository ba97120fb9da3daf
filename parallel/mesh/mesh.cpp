#include "parallel/mesh/mesh.hpp"

#include <algorithm>

#include "parallel/mesh/placement.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

Mesh::Mesh(const Layout& layout, std::int64_t rank)
    : layout_(layout), rank_(rank), place_(coordinates_of(layout, rank)), alone_(pretended_axis("alone", *time_)) {}

void Mesh::open(const std::function<std::unique_ptr<Axis>(const GroupOfRank&)>& open_group) {
  for (const GroupOfRank& group : groups_of_rank(layout_, rank_)) {
    groups_.push_back(open_group(group));
    sets_.push_back(group.set);
    if (group.name == "ends") ends_ = groups_.back().get();
    if (group.name == "world") world_ = groups_.back().get();
  }
  data_ = &along(layout_.axes->dividing(Divides::batch));
  tensor_ = &along(layout_.axes->dividing(Divides::width));
  pipeline_ = &along(layout_.axes->dividing(Divides::layers));
  context_ = &along(layout_.axes->dividing(Divides::tokens));
}

Axis& Mesh::along(AxisSet axes) const {
  const auto find = [&](AxisSet set) -> Axis* {
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    return set == 0 || found == sets_.end() ? nullptr : groups_[static_cast<std::size_t>(found - sets_.begin())].get();
  };
  if (Axis* const group = find(axes)) return *group;
  const AxisSet matters = layout_.divided(axes);
  if (Axis* const group = find(matters)) return *group;
  require(matters == 0, "{} has no group along {}", to_string(layout_), join(layout_.axes->names_of(axes), "+"));
  return *alone_;
}

Mesh::Mesh(const Layout& layout) : Mesh(layout, 0) {
  require(layout.ranks() == 1, "{} has {} ranks, but a mesh without a world has one", to_string(layout), layout.ranks());
  open([&](const GroupOfRank& group) { return pretended_axis(group.name, *time_); });
}

Mesh::Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms) : Mesh(layout, worlds.rank()) {
  require(worlds.size() == layout.ranks(), "{} has {} ranks, but the world has {}", to_string(layout), layout.ranks(),
          worlds.size());
  open([&](const GroupOfRank& group) {
    const Communicator& world = worlds.for_axis(group.chosen_as);
    Communicator ranks = world.split(static_cast<int>(group.group), static_cast<int>(group.rank));
    const std::string& algorithm = choice_for(algorithms, group.chosen_as);
    if (!algorithm.empty()) ranks.choose(algorithm);
    return live_axis(group.name, std::move(ranks), *time_);
  });
}

Mesh Mesh::pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                     std::shared_ptr<const Selector> selector, const std::vector<int>& hosts,
                     const std::vector<int>& switches) {
  Mesh mesh(layout, rank);
  const auto among = [&](const GroupOfRank& group, const std::vector<int>& places) {
    return places.empty() ? std::vector<int>{} : hosts_among(ranks_of(group, layout, rank), places);
  };
  mesh.open([&](const GroupOfRank& group) {
    return pretended_axis(group.name, static_cast<int>(group.rank), static_cast<int>(group.size), among(group, hosts),
                          among(group, switches), choice_for(backends, group.chosen_as),
                          choice_for(algorithms, group.chosen_as), selector, *mesh.time_);
  });
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
