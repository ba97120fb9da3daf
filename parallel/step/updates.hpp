// Determines when the optimizer updates parameters, and by which factor the optimizer multiplies gradients. All gradients
// have the same factor, which depends on the number of tokens in the batch, the loss scale and clipping. Only the totals of
// the global batch show whether gradients must be clipped or have overflowed.
//
//   after         F F F B B B ‖g‖ U U U               the default order
//   overlapped    F F F B B B ‖g‖                     a bucket is updated once its sum is complete. Needs a known factor: no
//                         U U U                       clipping, no loss scale, no masked tokens
//   speculative   F F F B B B ‖g‖                     the same, assuming the usual factor. If the totals show a different
//                         U U U [undo, U U U]         factor, old values are restored and the update is repeated. The step
//                                                     after that uses `after`. Results are bit-identical to `after`
//   delayed       F F F B B B ‖g‖ F F F B B B ‖g‖     updates during the next step: θ(t+1) = θ(t) − Adam(g(θ(t−1))), the
//                                 U U U       U U U   delayed parameter update of ZeRO-Offload (Ren et al. 2021)
//
// Overlap saves time only if the update waits for reads and writes of a slow tier (offload.hpp). The program progresses the
// update after every layer. `speculative` also keeps the old optimizer states, so states take twice the memory in their
// tier. `delayed` keeps master copies of all weights.
#pragma once

#include <chorale/training.hpp>
#include "layers/optimizer.hpp"
#include "parallel/step/reducer.hpp"

namespace chorale {

// Returns the bytes of an update whose transfer does not overlap computation. With delayed updates, only the publishing of
// new values does not overlap computation: it reads the master weights and writes the values.
TierTraffic exposed_part(const TierTraffic& update, UpdateTime time);

class Updates final : public ReductionListener {
 public:
  struct Done {
    bool publishes = false;   // the values have changed
    std::int64_t sweeps = 0;  // number of updates of all buckets, including rolled-back updates
    std::int64_t rolled_back = 0;
  };

  Updates(UpdateTime time, Optimizer& optimizer, const Numerics& numerics, const Queue& queue, bool plans);

  void reuses(const Bucket& bucket) override;
  void has_sums(const Bucket& bucket) override;
  bool wants_sums() const override { return time_ == UpdateTime::overlapped || time_ == UpdateTime::speculative; }

  // Called before the passes of a step. `usual` is the factor for the step's gradients, unless the batch totals show a
  // different factor.
  void begin(double rate, double usual);
  void progress() { optimizer_.progress(); }
  // Called after the totals of the step are known. `skipped`: the gradients overflowed.
  Done end(double rate, double scale, bool skipped);
  void settle() { optimizer_.finish(); }  // waits for a delayed update
  // Called before a failed step is repeated to find its error. Restores the values from the beginning of the step. Throws if
  // an overlapped update has already begun.
  void cancel(std::int64_t step);

 private:
  Optimizer& optimizer_;
  const Numerics& numerics_;
  const Queue queue_;
  UpdateTime time_;
  bool confident_;      // the last step had the usual factor
  double usual_ = 1;    // the usual factor in this step
  bool begun_ = false;  // an update of this step has begun, with the usual factor
};

}  // namespace chorale
