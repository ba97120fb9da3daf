// The options of the layout. `LayoutFlags` converts these options to a layout of ranks, and to a backend and a collective
// algorithm for each axis of the mesh.
//
//   --layout dp2.tp2.pp2.z1     the same as --dp 2 --tp 2 --pp 2 --zero 1. A flag such as --tp overrides its part of the
//                               layout string, unless the string comes from a source of higher precedence
//   --backend tp=shm,dp=ucx     one backend for all axes of the mesh, or one per axis; `dp=ucx,mpi`: mpi on all axes but dp
#pragma once
#include <string>
#include <vector>

#include "parallel/layout/asked_layout.hpp"
#include "parallel/mesh/mesh.hpp"
#include "src/base/launch.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

// The values of --backend and --algorithm for each axis. A part such as "tp=shm" names one axis. A part such as "shm"
// applies to all axes that no part names. The default for these axes is "auto".
ByAxis backends_by_axis(const std::vector<std::string>& parts);
ByAxis algorithms_by_axis(const std::vector<std::string>& parts);

Layout with_least_sizes(Layout layout);  // with 1 for each size that must be inferred

// Declares --order. order_of() converts its value to an order; an empty order means "auto".
Option& declare_order(Options& options, std::vector<std::string>& words);
AxisOrder order_of(const std::vector<std::string>& words);

struct ParallelChoice {
  Layout layout;
  ByAxis backends, algorithms;
};

class LayoutFlags : public AskedLayout {
 public:
  void declare(Options& options);
  void take_all() { takes_all_ = true; }  // lets --layout accept "all"; call it before declare
  // Lets --backend name a machine to simulate, as "simulated:NAME"; call it before declare. simulated() returns NAME, or "".
  void take_simulated() { takes_simulated_ = true; }
  std::string simulated() const;
  bool all() const override { return takes_all_ && word_ == "all"; }
  // While `search` is true, the layout is searched for, so flags of a pipeline have an effect without --pp.
  void search_if(const bool& search) { search_ = &search; }
  // With --layout all or a search: whether the other flags allow this layout. Without --schedule, they allow only the
  // schedules of this list.
  bool allows(const Layout& layout, ListedIn list = ListedIn::tables) const;
  Layout asked() const override { return asked(word()); }  // the given layout; a size of 0 must still be inferred
  // The number of ranks in the launch. Without a launcher, only MPI knows this number; the result is then the smallest
  // number of ranks that the layout needs.
  std::int64_t ranks_of(const Launch& launch) const;
  // Throws a usage error if a layout of several ranks was requested but there is only one process. `command`: the name of
  // the command, such as "train".
  void require_launched(std::int64_t world, const char* command) const;
  Layout layout(std::int64_t world) const;  // the complete layout on `world` ranks; require_fits checks that it is legal
  ByAxis backends() const { return simulated().empty() ? backends_by_axis(backend_) : ByAxis{{"", "auto"}}; }
  ByAxis algorithms() const { return algorithms_by_axis(algorithm_); }
  ParallelChoice choice(std::int64_t world) const;
  ParallelChoice choice(const LayoutLimits& limits) const;  // errors name layouts within `limits`

 private:
  LayoutWord word() const;
  Layout asked(const LayoutWord& word) const;
  Layout smallest() const;  // the layout as given, with 1 for each size that must be inferred
  // Returns the layout with the shards that --shard-size or --hpz requests. All sizes of the layout must be known.
  Layout with_shards(Layout layout, const LayoutWord& word) const;
  // Whether `flag` overrides `part` of the layout string. `flag` does not override the part if the string names this part
  // and comes from a source of higher precedence. For example, --layout z1 on the command line overrides zero = 2 in a file.
  bool counts(const std::string& flag, const LayoutWord& word, const std::string& part) const {
    return !word.named.contains(part) || outranks(flag);
  }
  bool outranks(const std::string& flag) const;  // whether the flag's precedence is at least that of --layout
  const Options* options_ = nullptr;             // the declared options, to find the source of each value
  const bool* search_ = nullptr;
  std::string word_, schedule_ = "auto";
  std::optional<std::int64_t> zero_;
  std::array<std::int64_t, most_axes> sizes_{};         // indexed by row of the axis table; 0 if --layout gives it
  std::int64_t chunks_ = 0, shard_size_ = 0, hpz_ = 0;  // each is 0 if --layout gives it
  bool takes_all_ = false, takes_simulated_ = false;
  bool distributed_optimizer_ = false, sequence_ = false;
  std::vector<std::string> backend_{"auto"}, algorithm_{"auto"}, order_{"auto"};
};

}  // namespace chorale::train
