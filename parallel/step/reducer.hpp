// A Reducer sums gradients over the ranks that hold copies of a parameter, and gives all of them the same values after the
// update. Data parallelism and ZeRO implement this interface. The buckets state which ranks sum which elements.
#pragma once
#include <deque>
#include <memory>
#include <set>

#include "parallel/step/buckets.hpp"

namespace chorale {

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // called when a step begins, with all gradients zero
  virtual void ready(const Parameter& parameter) = 0;  // called when a micro-batch's gradient has been added locally
  // Waits for all sums. Afterwards the gradients that this rank owns (with ZeRO its shards) are complete sums over ranks.
  virtual void finish() = 0;
  virtual void publish() = 0;  // after the update: gathers the new values from the ranks that own them
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets);  // data.cpp; also ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets);   // zero.cpp: ZeRO-2 and 3

// Called before the sum over a bucket's group: rounds the gradients (Buckets::round), and sums the elements listed in
// Bucket::sums over the groups named there. These are blocking all-reduces within the backward pass.
void add_before(Buckets& buckets, const Bucket& bucket);
// The sums after the sum over a bucket's group: over Bucket::other_shards, then those of a tied table over the two stages
// that hold it. With ZeRO, the ranks of such a sum hold the same shard of the bucket, so only that shard is summed.
class SumsAfter {
 public:
  explicit SumsAfter(Buckets& buckets) : buckets_(buckets) {}
  // A bucket has its sum over its group: begins the sum over other shards, which goes on in the background. All ranks call
  // this in the same order. Tells Buckets::on_summed of sums that are complete.
  void start(const Bucket& bucket);
  void finish();  // the sums that have not begun; waits for all

 private:
  struct UnderWay {
    const Bucket* bucket;
    Axis::Pending sum;
  };
  const Tensor& summed(const Bucket& bucket) const {
    return buckets_.options().zero == 0 ? bucket.summed : bucket.gradient_shard;
  }
  void sum_rest(Axis* Bucket::*over);
  void tell();

  Buckets& buckets_;
  std::deque<UnderWay> under_way_;
  std::set<const Bucket*> begun_;
};
// Gathers the values of every bucket from all shards.
void gather_values(Buckets& buckets);

}  // namespace chorale
