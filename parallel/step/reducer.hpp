// A Reducer sums gradients over the ranks that hold copies of a parameter, and gives all of them the same values after the
// update. Data parallelism and ZeRO implement this interface. The buckets state which ranks sum which elements.
#pragma once
#include <deque>
#include <memory>
#include <set>

#include "parallel/step/buckets.hpp"
#include "src/base/named.hpp"

namespace chorale {

// bucketed: during the backward pass. naive: at its end; does not work with ZeRO.
enum class ReducerKind : std::uint8_t { naive, bucketed };
constexpr auto names_of(ReducerKind) { return Names{"reducer", "naive", "bucketed"}; }

// What reducers tell an update that overlaps the backward pass (updates.hpp). The defaults are for those that need not know.
class ReductionListener {
 public:
  virtual ~ReductionListener() = default;
  // The gradients of a bucket are about to be cleared: whatever still reads those of the step before must end.
  virtual void reuses(const Bucket&) {}
  // The backward pass goes on, and the bucket has its sums over all ranks.
  virtual void has_sums(const Bucket&) {}
  virtual bool wants_sums() const { return false; }  // whether a reducer should look for complete sums in the backward pass
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // called when a step begins: whole gradients become zeros
  virtual void ready(const Parameter& parameter) = 0;  // called when a micro-batch's gradient has been added locally
  // Waits for all sums. Afterwards the gradients that this rank owns (with ZeRO its shards) are complete sums over ranks.
  virtual void finish() = 0;
  virtual void publish() = 0;  // after the update: gathers the new values from the ranks that own them
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets, ReductionListener& listener);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets, ReductionListener& listener);  // data.cpp; also ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets, ReductionListener& listener);   // zero.cpp: ZeRO-2 and 3

// Begins a bucket's gradients of a step.
inline void clear(Buckets& buckets, const Bucket& bucket, ReductionListener& listener) {
  listener.reuses(bucket);
  buckets.clear_gradients(bucket);
}

// Called before the sum over a bucket's group: rounds the gradients (Buckets::round), and sums the elements listed in
// Bucket::sums over the groups named there. These are blocking all-reduces within the backward pass.
void add_before(Buckets& buckets, const Bucket& bucket);
// The sums after the sum over a bucket's group: over Bucket::other_shards, then those of a tied table over the two stages
// that hold it. With ZeRO, the ranks of such a sum hold the same shard of the bucket, so only that shard is summed.
class SumsAfter {
 public:
  SumsAfter(Buckets& buckets, ReductionListener& listener) : buckets_(buckets), listener_(listener) {}
  // A bucket has its sum over its group: begins the sum over other shards, which goes on in the background. All ranks call
  // this in the same order. Tells the listener of sums that are complete.
  void start(const Bucket& bucket);
  void tell(const Bucket& bucket) const {  // a tied table has a further sum, in finish()
    if (!bucket.stages) listener_.has_sums(bucket);
  }
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
  void tell_complete();

  Buckets& buckets_;
  ReductionListener& listener_;
  std::deque<UnderWay> under_way_;
  std::set<const Bucket*> begun_;
};
// Gathers the values of every bucket from all shards.
void gather_values(Buckets& buckets);

}  // namespace chorale
