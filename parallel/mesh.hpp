// The mesh: all ranks of a run in a grid of named axes, and this rank's place in it. It is passed, never reached for. A group is a set of axes: the
// ranks that differ in those alone. All of its ranks build it together, once, when the mesh is made; strategies ask for it by the axes.
//
//   dp2.tp2.pp2     rank = (stage · 2 + replica) · 2 + shard
//
//   pp 0:  tp→ 0 1     pp 1:  4 5       tensor: 0–1, 2–3, 4–5, 6–7 (innermost: the most traffic, the nearest ranks)
//     dp↓      2 3            6 7       data: 0–2, 1–3, …     pipeline: 0–4, 1–5, …
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "parallel/axis.hpp"
#include "parallel/layout.hpp"

namespace chorale {

// By axis ("dp", "tp", "pp", "world"); "" is for all that are not named.
using ByAxis = std::map<std::string, std::string>;
std::string to_string(const ByAxis& choices);  // "shm", "mpi,tp=shm"
const std::string& choice_for(const ByAxis& choices, const std::string& axis);

// The same ranks joined by several backends at once.
class Worlds {
 public:
  Worlds(const ByAxis& backends, const mpi::Runtime& runtime, Clock& clock);
  explicit Worlds(Communicator world);

  const Communicator& for_axis(const std::string& axis) const;
  void use_device(const std::shared_ptr<Memory>& device);  // where tensors will lie, if not on the host
  Memory& memory() const;                                  // for tensors: what peers reach fastest on the backends here
  std::string about_memory() const;                        // what a record should say of it; empty: nothing
  std::shared_ptr<const Selector> selector() const;        // what auto asks: it knows the same on all of them
  // On all ranks: the ranks of one color, in their order, on the same backends; an empty handle for a negative color.
  Worlds split(int color) const;
  explicit operator bool() const { return bool(worlds_.begin()->second); }

 private:
  Worlds() = default;
  const Communicator* nearest() const;  // whose memory that is; null: nobody's
  ByAxis backends_;
  std::map<std::string, Communicator> worlds_;  // by backend
  std::unique_ptr<HostMemory> host_ = std::make_unique<HostMemory>();
  std::shared_ptr<Memory> device_;
};

// A rank's place on each axis, by row of the table.
using Coordinates = std::array<std::int64_t, most_axes>;
Coordinates coordinates_of(const Layout& layout, std::int64_t rank);
// A rank of a stage: in the first replica, with the first shard or the last, which may hold more.
int rank_of_stage(const Layout& layout, std::int64_t stage, bool last_shard = false);
// Where the ends of the model lie: the stages that hold its first and its last part, each once.
std::vector<std::int64_t> end_stages(const Layout& layout);

class Mesh {
 public:
  explicit Mesh(const Layout& layout = {});  // of one rank
  Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms);
  // What `rank` of such a mesh would be, without the others.
  static Mesh pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                        std::shared_ptr<const Selector> selector);

  const Layout& layout() const { return layout_; }
  const Coordinates& place() const { return place_; }
  // The ranks that differ in these axes alone. There are groups of each axis, of any that divide the batch or its tokens, and of all that divide
  // the width; axes of size 1 make no difference.
  Axis& along(AxisSet axes) const;
  Axis& along(const std::vector<std::string>& axes) const { return along(set_of(*layout_.axes, axes)); }
  Axis& data() const { return *data_; }          // what divides the batch
  Axis& tensor() const { return *tensor_; }      // what divides the width of a layer
  Axis& pipeline() const { return *pipeline_; }  // what divides the layers
  Axis& ends() const { return *ends_; }          // the stages at both ends of the model; of one rank in between
  Axis& world() const { return *world_; }
  const std::vector<std::unique_ptr<Axis>>& axes() const { return groups_; }
  CommunicationTime& time() const { return *time_; }  // of this rank, on all of them

 private:
  struct Line;
  using MakeGroup = std::function<std::unique_ptr<Axis>(const Line&)>;
  Mesh(const Layout& layout, std::int64_t rank);
  static std::vector<Line> lines_of(const Layout& layout, std::int64_t rank);
  void make(const MakeGroup& make_group);

  Layout layout_;
  Coordinates place_{};
  std::unique_ptr<CommunicationTime> time_ = std::make_unique<CommunicationTime>();
  std::vector<std::unique_ptr<Axis>> groups_;
  std::vector<AxisSet> sets_;    // of the groups
  std::unique_ptr<Axis> alone_;  // this rank, where it has nobody to share with
  Axis *data_ = nullptr, *tensor_ = nullptr, *pipeline_ = nullptr, *ends_ = nullptr, *world_ = nullptr;
};

Accounts accounts_of(const Mesh& mesh);
void clear_accounts(const Mesh& mesh);

}  // namespace chorale
