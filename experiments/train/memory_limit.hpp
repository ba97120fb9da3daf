// `--memory-limit` sets the largest number of bytes that a rank is allowed to hold. If the plan of a run needs more, the run
// is refused before it allocates anything.
//
//   auto     on the host: the memory available there (src/base/available_memory.hpp) when the run starts, divided by the
//            ranks of the host, minus a reserve for the program itself; on a GPU: the GPU's free memory, divided by the
//            ranks of the GPU
//   8G       8 GiB. If a rank's share of the memory is smaller, a warning says so
//   0        no limit: the operating system kills a rank that needs too much
#pragma once
#include <optional>
#include <string>

#include "src/base/mpi.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class MemoryLimit {
 public:
  void declare(Options& options);
  // Collective. Computes every rank's share of the memory. If the limit is `auto`, the smallest share is the limit of all
  // ranks.
  void settle(const mpi::Runtime& runtime);

  std::int64_t bytes() const { return asked_.value_or(share_); }  // 0: no limit, or auto before settle()
  bool lifted() const { return asked_ == 0; }                     // whether the limit was given as 0
  std::string about() const;                                      // the text before the limit in an error: "the limit is"
  std::string excess() const { return excess(share_); }           // a warning if some rank has less than the limit, or ""
  std::string excess(std::int64_t has) const;                     // warning for a rank with `has` bytes; "" if none is due

 private:
  std::optional<std::int64_t> asked_;  // the given bytes; nullopt: auto
  std::int64_t share_ = 0;             // the smallest share of any rank, in bytes
};

}  // namespace chorale::train
