// Plans the snapshots that a run under `chorale launch` keeps in memory (parallel/state/snapshot.hpp): the bytes of its
// ranks' parts, and the memory that a host needs for them. Headers of files are not included.
#pragma once
#include "parallel/plan/plan.hpp"

namespace chorale {

struct PlannedSnapshots {
  int fullest = 0;               // the rank with the most bytes
  std::int64_t bytes = 0;        // of its parts in one generation
  std::int64_t host_bytes = -1;  // of all generations of all ranks on the fullest host; −1: the hosts are not known
  bool is_exact = true;          // whether every rank was planned
};

// If the layout has more than `most` ranks, only the first replica's first and last shard of each stage are planned, and all
// ranks on their hosts. Other ranks can save slightly more, because ZeRO shards are cut without regard to tensors, and
// norms are saved by the first shard only.
PlannedSnapshots plan_snapshots(const PlanRequest& request, std::int64_t most = 64);

}  // namespace chorale
