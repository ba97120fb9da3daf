// How ranks with copies come to one gradient, and to one model after the step: the seam that data parallelism and ZeRO fill. Who adds what up
// with whom is written in the buckets.
#pragma once
#include <memory>

#include "parallel/buckets.hpp"

namespace chorale {

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // a step: gradients are zero
  virtual void ready(const Parameter& parameter) = 0;  // one micro-batch's gradient has been added
  virtual void finish() = 0;                           // what this rank owns is the sum over all ranks
  virtual void publish() = 0;                          // after the update: the others' shares of the values
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets);  // data.cpp; also ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets);   // zero.cpp: ZeRO-2 and 3

// What comes before the sum over a bucket's group: the elements that are summed over more ranks.
void add_before(const Bucket& bucket);
// What comes after it: the copies of a shard, and those on other stages (a tied table's first and last), have one gradient. All copies are cut
// alike, so these sums are over what each rank owns, and no larger than they must be.
void add_after(Buckets& buckets);
// Every bucket's values from the shards of all.
void gather_values(Buckets& buckets);

}  // namespace chorale
