// The mesh arranges all ranks of a run in a grid of named axes, and knows this rank's coordinates. A mesh is passed as an
// argument and is never global. A set of axes defines groups: each group contains the ranks that differ only in their
// coordinates on these axes. When the mesh is constructed, the ranks of each group open a communicator together. Strategies
// look up a group by its axes.
//
//   dp2.tp2.pp2     rank = (stage · 2 + replica) · 2 + shard
//
//   pp 0:  tp→ 0 1     pp 1:  4 5       tensor: 0–1, 2–3, 4–5, 6–7 (innermost: the most traffic, the nearest ranks)
//     dp↓      2 3            6 7       data: 0–2, 1–3, …     pipeline: 0–4, 1–5, …
//
// With a different order of the axes, different ranks form the groups: in dp2.tp2.pp2.tp-dp-pp, pp is the innermost axis.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "parallel/layout/grid.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/worlds.hpp"

namespace chorale {

class Mesh {
 public:
  explicit Mesh(const Layout& layout = {});  // a mesh of one rank, without peers
  // Each axis's backend must connect all ranks of each of the axis's groups (require_reach).
  Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms);
  // For plans: a simulated mesh, from the view of `rank`, without peers. `hosts` states the host of each rank; if it is
  // empty, all ranks are on one host. `switches` states the leaf switch of each rank in the same way.
  static Mesh pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                        std::shared_ptr<const Selector> selector, const std::vector<int>& hosts = {},
                        const std::vector<int>& switches = {});

  const Layout& layout() const { return layout_; }
  const Coordinates& place() const { return place_; }
  // The group of this rank and all ranks that differ from this rank only on these axes. Axes of size 1 are ignored. The
  // remaining set must be a single axis, any set of axes that divide the batch or its tokens, all axes that divide the
  // width, or all axes that divide the layers. For any other set, throws an error.
  Axis& along(AxisSet axes) const;
  Axis& along(const std::vector<std::string>& axes) const { return along(layout_.axes->set_of(axes)); }
  Axis& data() const { return *data_; }          // divides the batch
  Axis& tensor() const { return *tensor_; }      // divides the width of a layer
  Axis& pipeline() const { return *pipeline_; }  // divides the layers
  Axis& context() const { return *context_; }    // divides the tokens of a sequence
  Axis& ends() const { return *ends_; }          // the end stages (end_stages()); on other stages, a group of size 1
  Axis& world() const { return *world_; }
  const std::vector<std::unique_ptr<Axis>>& axes() const { return groups_; }
  CommunicationTime& time() const { return *time_; }  // this rank's communication time, on all axes together

 private:
  Mesh(const Layout& layout, std::int64_t rank);
  void open(const std::function<std::unique_ptr<Axis>(const GroupOfRank&)>& open_group);

  Layout layout_;
  std::int64_t rank_;
  Coordinates place_{};
  std::unique_ptr<CommunicationTime> time_ = std::make_unique<CommunicationTime>();
  std::vector<std::unique_ptr<Axis>> groups_;
  std::vector<AxisSet> sets_;    // the axes of each group
  std::unique_ptr<Axis> alone_;  // the group of this rank only
  Axis *data_ = nullptr, *tensor_ = nullptr, *pipeline_ = nullptr, *context_ = nullptr, *ends_ = nullptr, *world_ = nullptr;
};

Accounts accounts_of(const Mesh& mesh);
void clear_accounts(const Mesh& mesh);

}  // namespace chorale
