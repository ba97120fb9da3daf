// When the optimizer updates, and what it assumes. All gradients get one factor, from the tokens of the batch, the loss
// scale and clipping. Only the totals of the whole batch tell whether they must be clipped, or have overflowed.
//
//   after         F F F B B B ‖g‖ U U U               the usual order
//   overlapped    F F F B B B ‖g‖                     a bucket is updated once its sum is complete. Needs a known factor: no
//                         U U U                       clipping, no loss scale, no masked tokens
//   speculative   F F F B B B ‖g‖                     the same, assuming the usual factor. If the totals say otherwise, the
//                         U U U [undo, U U U]         old values return, and the update is repeated. After such a step, the
//                                                     next one is `after`. The bits are those of `after`
//   delayed       F F F B B B ‖g‖ F F F B B B ‖g‖     updates during the next step: θ(t+1) = θ(t) − Adam(g(θ(t−1))), the
//                                 U U U       U U U   delayed parameter update of ZeRO-Offload (Ren et al. 2021)
//
// An update can overlap only if it waits for something: reads and writes of a slow tier (offload.hpp). The program gives it
// time after every layer. `speculative` keeps the old states: as much memory again, in the same tier. `delayed` keeps master
// copies of all weights.
#pragma once

#include "layers/optimizer.hpp"
#include "parallel/step/reducer.hpp"

namespace chorale {

enum class UpdateTime : std::uint8_t { after, overlapped, speculative, delayed };
constexpr auto names_of(UpdateTime) { return Names{"time of updates", "after", "overlapped", "speculative", "delayed"}; }

// The part of an update's bytes that moves while nothing computes. Delayed updates have only the publication of the values
// there: masters that are read, values that are written.
TierTraffic exposed_part(const TierTraffic& update, UpdateTime time);

class Updates final : public ReductionListener {
 public:
  struct Done {
    bool publishes = false;   // the values have changed
    std::int64_t sweeps = 0;  // updates of all buckets, also those that were rolled back
    std::int64_t rolled_back = 0;
  };

  Updates(UpdateTime time, Optimizer& optimizer, const Numerics& numerics, const Queue& queue, bool plans);

  void reuses(const Bucket& bucket) override;
  void has_sums(const Bucket& bucket) override;
  bool wants_sums() const override { return time_ == UpdateTime::overlapped || time_ == UpdateTime::speculative; }

  // Before the passes of a step. `usual`: the factor of its gradients, unless the totals say otherwise.
  void begin(double rate, double usual);
  void progress() { optimizer_.progress(); }
  // After the totals of the step. `skipped`: the gradients overflowed.
  Done end(double rate, double scale, bool skipped);
  void settle() { optimizer_.finish(); }  // waits for a delayed update
  // Before an error of the step is examined, which repeats the step: the values must be those of its beginning.
  void cancel(std::int64_t step);

 private:
  Optimizer& optimizer_;
  const Numerics& numerics_;
  const Queue queue_;
  UpdateTime time_;
  bool confident_;      // the last step had the usual factor
  double usual_ = 1;    // of this step
  bool begun_ = false;  // an update of this step has begun, with the usual factor
};

}  // namespace chorale
