#include "experiments/train/memory_limit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/available_memory.hpp"
#include "src/base/text.hpp"

namespace chorale::train {

void MemoryLimit::declare(Options& options) {
  options
      .add_bytes("memory-limit", "auto", asked_,
                 "most memory a rank may hold; auto: its share of the free memory of its host or GPU; 0: no limit")
      .range(0, 1e15);
}

void MemoryLimit::settle(const mpi::Runtime& runtime) {
  // A rank needs memory that its ledger does not count: libraries, thread stacks, packed operands of matrix products, the
  // record. For models of 1 to 124 million parameters, the uncounted memory was 50 to 120 MiB.
  constexpr std::int64_t uncounted = 128 << 20;
  const std::int64_t share = available_memory() / mpi::place_on_host(runtime.world()).second - uncounted;
  share_ = std::max<std::int64_t>(1, std::ranges::min(mpi::all_gather(runtime.world(), share)));
}

std::string MemoryLimit::about() const {
  return asked_ ? "the limit is" : "its share of the host's available memory (--memory-limit auto) is";
}

std::string MemoryLimit::excess(std::int64_t has) const {
  if (asked_.value_or(0) <= has) return "";
  return fmt::format("--memory-limit is {}, but {} is all that each rank can have here", human_bytes(*asked_),
                     human_bytes(has));
}

}  // namespace chorale::train
