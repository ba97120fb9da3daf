// The mesh: all ranks of a run in a grid of named axes, and this rank's place in it. It is passed, never reached for.
//
//   dp2.tp2.pp2     rank = (stage · 2 + replica) · 2 + shard
//
//   pp 0:  tp→ 0 1     pp 1:  4 5       tensor: 0–1, 2–3, 4–5, 6–7 (innermost: the most traffic, the nearest ranks)
//     dp↓      2 3            6 7       data: 0–2, 1–3, …     pipeline: 0–4, 1–5, …
#pragma once
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

class Mesh {
 public:
  explicit Mesh(const Layout& layout = {});  // of one rank
  Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms);
  // What `rank` of such a mesh would be, without the others.
  static Mesh pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                        std::shared_ptr<const Selector> selector);

  const Layout& layout() const { return layout_; }
  Axis& data() const { return *axes_[0]; }
  Axis& tensor() const { return *axes_[1]; }
  Axis& pipeline() const { return *axes_[2]; }
  Axis& ends() const { return *axes_[3]; }  // the first and the last stage of a pipeline; of one rank in between
  Axis& world() const { return *axes_[4]; }
  const std::vector<std::unique_ptr<Axis>>& axes() const { return axes_; }
  CommunicationTime& time() const { return *time_; }  // of this rank, on all of them
  bool first_stage() const { return pipeline().rank() == 0; }
  bool last_stage() const { return pipeline().rank() + 1 == pipeline().size(); }

 private:
  Layout layout_;
  std::unique_ptr<CommunicationTime> time_ = std::make_unique<CommunicationTime>();
  std::vector<std::unique_ptr<Axis>> axes_;
};

Accounts accounts_of(const Mesh& mesh);
void clear_accounts(const Mesh& mesh);

}  // namespace chorale
