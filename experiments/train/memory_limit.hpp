// `--memory-limit`: the most bytes a rank may hold. A plan that needs more is refused before anything is allocated.
//
//   auto     the rank's share of its host's available memory (src/base/available_memory.hpp) at the start of the run, minus
//            a reserve for the program itself; on a GPU, its share of the free memory
//   8G       8 GiB
//   0        no limit: the kernel kills a rank that does not fit
#pragma once
#include <optional>
#include <string>

#include "parallel/training.hpp"
#include "src/base/mpi.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class MemoryLimit {
 public:
  void declare(Options& options);
  // Collective: sets `auto` to the smallest share of any rank, on all ranks.
  void settle(const mpi::Runtime& runtime);

  void complete(TrainingOptions& options) const { options.memory_limit = bytes(); }
  std::int64_t bytes() const { return asked_.value_or(share_); }  // 0: no limit, or auto before it is settled
  bool lifted() const { return asked_ == 0; }
  std::string about() const;  // for errors: "the limit is"

 private:
  std::optional<std::int64_t> asked_;  // none: auto
  std::int64_t share_ = 0;
};

}  // namespace chorale::train
