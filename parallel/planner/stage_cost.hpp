// The step of a stage on a system: what its script noted, with the time of every kernel. Micro-batches are alike, so the
// script is that of a short step, and the executor repeats its middle micro-batch:
//
//   script of 3 micro-batches      F0 F1 F2 B0 B1 B2 rest
//   step of 6                      F0 F1 F1 F1 F1 F2 B0 B1 B1 B1 B1 B2 rest      (in the order of the pipeline's schedule)
//
// The last micro-batch starts the sums of gradients, so it is not like the others.
#pragma once
#include "parallel/plan/plan.hpp"
#include "parallel/planner/kernel_time.hpp"

namespace chorale {

struct StageCost {
  struct Act {
    enum class Kind { work, begin, wait } kind = Kind::work;
    KernelTime time = {};     // of kind work
    double calls = 0;         // of kind work: seconds of collectives of tp, for which the accelerator waits
    double host_seconds = 0;  // of kind work: for which the host's thread is busy
    int call = -1;            // of kinds begin and wait
    std::int64_t sent = 0;    // of kind work: bytes that those collectives send
    double gpu() const { return time.total() + calls; }
  };
  struct Part {
    StepPart part;
    std::vector<Act> acts;
  };
  std::vector<Part> parts;          // in the order of the script
  std::vector<Script::Call> calls;  // by Act::call
  std::vector<double> after;        // by Act::call: seconds from a message's arrival until its receiver goes on
  const Part& of(const PipelineAction& action, std::int64_t micro_batches) const;
  const Part& rest() const { return parts.back(); }
};

// The step to record, and the number formats of its products.
struct StageRequest {
  PlanRequest plan;      // of the whole step; its hosts are those of the system
  std::string products;  // the number format of the products of blocks
  std::string others;    // and of all other products
};

StageCost stage_cost(const StageRequest& request, const System& system, int rank);

// Seconds of a collective or message if nothing else uses its links.
struct CallTime {
  double latency = 0;   // until bytes move
  double moves = 0;     // for which bytes move
  double crossing = 0;  // bytes that one connection of this call sends to another host
  double total() const { return latency + moves; }
};
// B/s at which the ranks of a group on a host send to other hosts together.
double crossing_rate(const System& system, int on_host, int groups_on_host, bool is_message);
CallTime time_of_call(const Script::Call& call, const System& system, int groups_on_host);

}  // namespace chorale
