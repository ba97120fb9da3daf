// How the ranks of the data axis come to one gradient, and to one model after the step: the seam that data parallelism and ZeRO fill.
#pragma once
#include <memory>

#include "parallel/buckets.hpp"
#include "parallel/mesh.hpp"

namespace chorale {

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void begin(std::int64_t micro_batches) = 0;  // a step: gradients are zero
  virtual void ready(const Parameter& parameter) = 0;  // one micro-batch's gradient has been added
  virtual void finish() = 0;                           // what this rank owns is the sum over all ranks
  virtual void publish() = 0;                          // after the update: the others' shares of the values
};

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets, const Mesh& mesh);     // data.cpp
std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets, const Mesh& mesh);  // data.cpp; also ZeRO-1
std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets, const Mesh& mesh);   // zero.cpp: ZeRO-2 and 3

// The copies of a tied table on the first and the last stage have one gradient. After the data axis: both copies are cut alike, so the sum is
// over what each rank owns, and no larger than it must be.
void add_tied(Buckets& buckets, const Mesh& mesh);
// Every bucket's values from the shards of all.
void gather_values(Buckets& buckets, const Mesh& mesh);

}  // namespace chorale
