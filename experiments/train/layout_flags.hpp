// The options of parallel training, under our names and Megatron's, and what they come to: a layout, and what carries and
// reduces what.
//
//   --layout dp2.tp2.pp2.z1     the same as --dp 2 --tp 2 --pp 2 --zero 1; a long flag overrides its part of the word,
//                               unless the word comes from a source of higher precedence
//   --backend tp=shm,dp=ucx     one backend for all axes of the mesh, or one each; `dp=ucx,mpi`: mpi on the axes not named
#pragma once
#include <string>
#include <vector>

#include "parallel/mesh.hpp"
#include "parallel/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

// "shm", or "tp=shm,dp=ucx": a word for each axis, and one for those that are not named; auto where there is none.
ByAxis backends_by_axis(const std::vector<std::string>& parts);
ByAxis algorithms_by_axis(const std::vector<std::string>& parts);

struct ParallelChoice {
  Layout layout;
  ByAxis backends, algorithms;
};

class LayoutFlags {
 public:
  void declare(Options& options);
  void declare_layout(Options& options);  // without what only training asks for
  void take_all() { takes_all_ = true; }  // before it declares: the word may be "all"
  bool all() const { return takes_all_ && word_ == "all"; }
  bool allows(const Layout& layout) const;  // of "all": what the flags beside it say
  Layout asked() const;                     // with 0 for what is to be inferred
  Layout layout(std::int64_t world) const;  // a usage error for what is no layout; whether it fits is asked by require_fits
  ByAxis backends() const { return backends_by_axis(backend_); }
  ByAxis algorithms() const { return algorithms_by_axis(algorithm_); }
  ParallelChoice choice(std::int64_t world) const;
  ParallelChoice choice(const LayoutLimits& limits) const;  // as much, and names layouts that fit these
  void complete(TrainingOptions& options) const;            // with the reducer and its buckets

 private:
  bool counts(const std::string& flag, const std::string& part) const;
  const Options* options_ = nullptr;  // where they are declared
  std::string word_, zero_ = "auto", schedule_ = "auto", reducer_ = "bucketed";
  std::array<std::int64_t, most_axes> sizes_{};  // by row of the table of axes; 0: as the word says
  std::int64_t chunks_ = 0;                      // 0: as the word says
  bool takes_all_ = false;
  bool distributed_optimizer_ = false, sequence_ = false, partition_activations_ = false;
  std::vector<std::string> backend_{"auto"}, algorithm_{"auto"};
  std::int64_t bucket_bytes_ = 0;
};

}  // namespace chorale::train
