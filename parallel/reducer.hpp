// How ranks that hold copies get one gradient, and one model after the step. Data parallelism and ZeRO implement this
// interface. The buckets state which ranks sum what.
#pragma once
#include <memory>

#include "parallel/buckets.hpp"

namespace chorale {

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // a step begins; gradients are zero
  virtual void ready(const Parameter& parameter) = 0;  // one micro-batch's gradient has been added
  virtual void finish() = 0;                           // afterwards this rank's gradients are sums over all ranks
  virtual void publish() = 0;                          // after the update: gathers the values that other ranks own
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets);  // data.cpp; also ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets);   // zero.cpp: ZeRO-2 and 3

// Before the sum over a bucket's group: sums the elements of Bucket::sums over their own groups.
void add_before(const Bucket& bucket);
// After it: sums over the ranks that hold copies of a shard, and over stages (a tied table is on the first and the last).
// All copies are cut alike, so each rank sums only what it owns.
void add_after(Buckets& buckets);
// Gathers the values of every bucket from all shards.
void gather_values(Buckets& buckets);

}  // namespace chorale
