// A Reducer sums gradients over the ranks that hold copies of a parameter. After the update, the reducer sends the new
// values to the ranks that did not compute them. Data parallelism and ZeRO implement this interface. The buckets
// (buckets.hpp) define which ranks sum which elements.
#pragma once
#include <deque>
#include <memory>
#include <set>
#include <span>

#include <chorale/training.hpp>
#include "parallel/step/buckets.hpp"

namespace chorale {

// Reducers notify this listener, so that an update can overlap the backward pass (updates.hpp). By default, the listener
// ignores all notifications.
class ReductionListener {
 public:
  virtual ~ReductionListener() = default;
  // A bucket's gradients are about to be cleared. Any work that still reads the previous step's gradients must finish before
  // this function returns.
  virtual void reuses(const Bucket&) {}
  // The bucket's sums over all ranks are complete. The backward pass can still be running.
  virtual void has_sums(const Bucket&) {}
  // Whether a reducer should test for complete sums during the backward pass.
  virtual bool wants_sums() const { return false; }
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // called when a step begins; clears full gradients
  virtual void ready(const Parameter& parameter) = 0;  // called when this rank has added a micro-batch's gradient of the
                                                       // parameter
  // Waits for all sums. Afterwards, the gradients that this rank owns are complete sums over ranks. With ZeRO, a rank owns
  // its gradient shards.
  virtual void finish() = 0;
  virtual void publish() = 0;  // after the update: gathers the new values from the ranks that own them
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets, ReductionListener& listener);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets, ReductionListener& listener);  // data.cpp; also for ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets, ReductionListener& listener);   // zero.cpp: ZeRO-2 and 3

// zero.cpp: wraps each layer, which is a unit of the model, so that the unit has full tensors only while it computes.
// `uses`: the parameters of each unit, beginning with the unit of the first layer.
void wrap_units(std::vector<LayerPointer>& layers, std::span<const std::vector<ParameterPointer>> uses, Buckets& buckets);

// A sum of a bucket's gradients that has begun.
struct SumUnderWay {
  const Bucket* bucket;
  Axis::Pending sum;
};

// Clears a bucket's gradients for a new step.
inline void clear(Buckets& buckets, const Bucket& bucket, ReductionListener& listener) {
  listener.reuses(bucket);
  buckets.clear_gradients(bucket);
}

// Called before the sum over a bucket's group: rounds the gradients (Buckets::round), and sums each range in Bucket::sums
// over the range's group. These sums are blocking all-reduces within the backward pass.
void add_before(Buckets& buckets, const Bucket& bucket);
// Computes the additional sums of a bucket's gradients, after the sum over the bucket's group. The first additional sum is
// over Bucket::other_shards. The second additional sum is over the two stages that hold a tied embedding table. With ZeRO,
// each additional sum is over ranks with the same shard, so these ranks sum only this shard.
class SumsAfter {
 public:
  SumsAfter(Buckets& buckets, ReductionListener& listener) : buckets_(buckets), listener_(listener) {}
  // Called when the sum over a bucket's group is complete. Begins the sum over Bucket::other_shards, which proceeds in the
  // background. All ranks must call start() for the buckets in the same order. Notifies the listener of complete sums.
  void start(const Bucket& bucket);
  void tell(const Bucket& bucket) const {  // the sum of a tied table is complete only after finish()
    if (!bucket.stages) listener_.has_sums(bucket);
  }
  void finish();  // begins the remaining sums and waits for all sums

 private:
  const Tensor& summed(const Bucket& bucket) const {
    return buckets_.options().zero == 0 ? bucket.summed : bucket.gradient_shard;
  }
  void sum_rest(Axis* Bucket::*over);
  void tell_complete();

  Buckets& buckets_;
  ReductionListener& listener_;
  std::deque<SumUnderWay> under_way_;
  std::set<const Bucket*> begun_;
};
// Gathers the values of every bucket from all shards.
void gather_values(Buckets& buckets);

}  // namespace chorale
