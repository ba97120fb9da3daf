// Measures which messages of ordinary memory are best staged. A rank stages a message by copying it to mapped memory, from
// which the receiver copies it again. The kernel copies a message once, but each of these copies starts with a system call
// that pins pages. So short messages are staged, and `staged_bytes` of the machine file is the length up to which staging
// takes less time.
//
//   all_reduce, direct, messages of   512 B     1 KiB    2 KiB    4 KiB    8 KiB    16 KiB   …     on 2 ranks
//   all staged                        4.8 µs    4.6      4.3      4.1      4.8      7.7
//   all copied by the kernel          16.3 µs   8.6      4.8      3.0      3.5      4.6            staged_bytes = 2 KiB
//
// The times belong to calls whose data do not fit into cells. Messages below 4 KiB are the chunks of longer ones.
#pragma once
#include <map>
#include <string>

#include "experiments/bench/sweep.hpp"

namespace chorale::bench {

struct StagingTimes {
  double staged = 0, copied = 0;  // seconds
};

// Returns the longest message that is best staged: the length that minimizes the sum of the logarithms of the times, if
// messages up to this length are staged and longer messages are copied. Returns 0 if no message is best staged, and −1 if
// nothing was measured. The map's keys are the lengths of messages in bytes.
std::int64_t best_staged_bytes(const std::map<std::int64_t, StagingTimes>& times);

struct StagedBytes {
  std::int64_t bytes = -1;  // on rank 0; −1 if the backend maps no memory of other processes or the kernel copies none
  bool stopped = false;     // true: a signal ended the measurement
  std::string busy = {};    // on rank 0: the load of other programs, if it was large enough for a warning
};
// Collective.
StagedBytes measure_staged_bytes(const std::string& backend, const Sweep& sweep, const Session& session);

}  // namespace chorale::bench
