// A Reducer sums gradients over the ranks that hold copies of a parameter, and gives all of them the same values after the
// update. Data parallelism and ZeRO implement this interface. The buckets state which ranks sum which elements.
#pragma once
#include <memory>

#include "parallel/buckets.hpp"

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
// Called after the sums over the groups of all buckets: sums over Bucket::other_shards, then sums a tied table over the two
// stages that hold it. With ZeRO, the ranks of such a sum hold the same shard of the bucket, so only that shard is summed.
void add_after(Buckets& buckets);
// Gathers the values of every bucket from all shards.
void gather_values(Buckets& buckets);

}  // namespace chorale
