// The cost of a step on one pipeline stage: the acts of the stage's script, with the time of every kernel on the given
// system. All micro-batches cost the same, so only a short step is recorded. The executor repeats the middle micro-batch of
// this short step:
//
//   script of 3 micro-batches      F0 F1 F2 B0 B1 B2 rest
//   step of 6                      F0 F1 F1 F1 F1 F2 B0 B1 B1 B1 B1 B2 rest      (in the order of the pipeline's schedule)
//
// The last micro-batch differs, because gradient sums over ranks start in its backward pass.
#pragma once
#include "parallel/plan/plan.hpp"
#include "parallel/prediction/kernel_time.hpp"

namespace chorale {

struct StageCost {
  struct Act {
    enum class Kind { work, begin, wait } kind = Kind::work;
    KernelTime time = {};     // for kind work
    double calls = 0;         // for kind work: time, in seconds, of tp collectives for which the accelerator waits
    double host_seconds = 0;  // for kind work: time, in seconds, for which the host thread is busy
    int call = -1;            // for kinds begin and wait
    std::int64_t sent = 0;    // for kind work: bytes that these tp collectives send
    double gpu() const { return time.total() + calls; }
  };
  struct Part {
    StepPart part;
    std::vector<Act> acts;
  };
  std::vector<Part> parts;          // in the order of the script
  std::vector<Script::Call> calls;  // indexed by Act::call
  std::vector<double> after;        // indexed by Act::call: time, in seconds, from a message's arrival until its receiver
                                    // continues
  const Part& of(const PipelineAction& action, std::int64_t micro_batches) const;
  const Part& rest() const { return parts.back(); }
};

// Describes the step to record, and the number formats of the step's matrix products.
struct StageRequest {
  PlanRequest plan;      // for the complete step; plan.hosts must be the hosts of the system
  std::string products;  // the number format of products in blocks
  std::string others;    // the number format of all other products
};

StageCost stage_cost(const StageRequest& request, const System& system, int rank);

// The duration of a collective or message if no other call uses its links.
struct CallTime {
  double latency = 0;          // time, in seconds, until the first bytes are sent
  double moves = 0;            // time, in seconds, during which bytes are sent
  double crossing = 0;         // bytes that one connection of this call sends to a different host
  double switch_crossing = 0;  // bytes that all connections of this call from one leaf switch send to other leaf switches
  double total() const { return latency + moves; }
};
// Returns the combined rate, in B/s, at which the ranks of a group on one host send to other hosts.
double crossing_rate(const System& system, int on_host, int groups_on_host, bool is_message);
CallTime time_of_call(const Script::Call& call, const System& system, int groups_on_host);

}  // namespace chorale
