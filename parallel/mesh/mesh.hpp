// The mesh: all ranks of a run in a grid of named axes, and this rank's coordinates in it. A mesh is passed as an argument;
// none is global. A set of axes defines groups: each group contains the ranks that differ only in these axes. When the mesh
// is made, the ranks of each group open a communicator together. Strategies ask for a group by its axes.
//
//   dp2.tp2.pp2     rank = (stage · 2 + replica) · 2 + shard
//
//   pp 0:  tp→ 0 1     pp 1:  4 5       tensor: 0–1, 2–3, 4–5, 6–7 (innermost: the most traffic, the nearest ranks)
//     dp↓      2 3            6 7       data: 0–2, 1–3, …     pipeline: 0–4, 1–5, …
//
// With another order of the axes, other ranks form the groups: in dp2.tp2.pp2.tp-dp-pp, pp is the innermost axis.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "parallel/layout/layout.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/worlds.hpp"

namespace chorale {

// A rank's coordinate on each axis; the index is the axis's row in the table of axes.hpp.
using Coordinates = std::array<std::int64_t, most_axes>;
Coordinates coordinates_of(const Layout& layout, std::int64_t rank);
// A group of two or more ranks in the mesh of a layout. `chosen_as`: the axis whose backend and algorithm the group uses. A
// group along several axes uses those of the axis that is usually the outermost, because its ranks are the furthest apart.
struct RankGroup {
  std::string name, chosen_as;
  std::vector<int> ranks;  // in the order of the group
};
std::vector<RankGroup> groups_of(const Layout& layout);
// The rank that holds a stage in the first replica. `last_shard` selects the last tensor-parallel rank instead of the
// first: its shard may be larger. `context_rank` selects the rank along cp.
int rank_of_stage(const Layout& layout, std::int64_t stage, bool last_shard = false, std::int64_t context_rank = 0);
std::int64_t stage_of(const Layout& layout, std::int64_t rank);         // the pipeline stage of a rank
std::int64_t context_rank_of(const Layout& layout, std::int64_t rank);  // its rank along cp
// The stages that hold the model's first and last part; one entry if they are the same.
std::vector<std::int64_t> end_stages(const Layout& layout);

class Mesh {
 public:
  explicit Mesh(const Layout& layout = {});  // a mesh of one rank, without peers
  Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms);
  // For plans: the mesh as `rank` would see it, without any peers. `hosts`: the host of each rank; empty: all on one host.
  static Mesh pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                        std::shared_ptr<const Selector> selector, const std::vector<int>& hosts = {});

  const Layout& layout() const { return layout_; }
  const Coordinates& place() const { return place_; }
  // The group of this rank and all ranks that differ from it only in these axes. Axes of size 1 are ignored. The remaining
  // axes must be a single axis, any axes that divide the batch or its tokens, all axes that divide the width, or all axes
  // that divide the layers. Throws for any other set.
  Axis& along(AxisSet axes) const;
  Axis& along(const std::vector<std::string>& axes) const { return along(set_of(*layout_.axes, axes)); }
  Axis& data() const { return *data_; }          // divides the batch
  Axis& tensor() const { return *tensor_; }      // divides the width of a layer
  Axis& pipeline() const { return *pipeline_; }  // divides the layers
  Axis& context() const { return *context_; }    // divides the tokens of a sequence
  // The rank along context() of each rank along an axis, which is a row of the table of axes.
  std::vector<std::int64_t> context_ranks_along(std::size_t row) const;
  Axis& ends() const { return *ends_; }  // the stages of end_stages(); on other stages, a group of size 1
  Axis& world() const { return *world_; }
  const std::vector<std::unique_ptr<Axis>>& axes() const { return groups_; }
  CommunicationTime& time() const { return *time_; }  // this rank's communication time, on all axes together

 private:
  struct Line;
  using MakeGroup = std::function<std::unique_ptr<Axis>(const Line&)>;
  Mesh(const Layout& layout, std::int64_t rank);
  static std::vector<Line> lines_of(const Layout& layout, std::int64_t rank);
  friend std::vector<RankGroup> groups_of(const Layout& layout);
  void make(const MakeGroup& make_group);

  Layout layout_;
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
