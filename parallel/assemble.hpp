// What options and a layout come to: which shard boundary, schedule, buckets, reducer and rule a training is made of.
#pragma once
#include "parallel/training.hpp"

namespace chorale {

void check(const TrainingOptions& options, const Layout& layout);  // usage errors for what does not go together
std::unique_ptr<ShardBoundary> boundary_of(const TrainingOptions& options, const Mesh& mesh);
PipelineSchedule schedule_of(const TrainingOptions& options, const Layout& layout);
BucketOptions bucket_options(const TrainingOptions& options, const Mesh& mesh, const Numerics& numerics);
std::unique_ptr<Reducer> reducer_of(const TrainingOptions& options, Buckets& buckets, const Mesh& mesh);
std::unique_ptr<UpdateRule> rule_of(const TrainingOptions& options);

}  // namespace chorale
