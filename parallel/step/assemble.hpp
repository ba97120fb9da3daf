// Builds the parts of a Training from its options and layout: connections, pipeline schedule, buckets and reducer.
#pragma once
#include "parallel/step/training.hpp"

namespace chorale {

void check(const TrainingOptions& options, const Layout& layout);  // throws a usage error if options contradict each other
bool go_together(const TrainingOptions& options, const Layout& layout);  // whether check() throws nothing
// The number of micro-batches of a replica in a step, and the same options with a different number.
std::int64_t micro_batches_of(const TrainingOptions& options, const Layout& layout);
TrainingOptions with_micro_batches(TrainingOptions options, const Layout& layout, std::int64_t number);
PipelineSchedule schedule_of(const TrainingOptions& options, const Layout& layout);
BucketOptions bucket_options(const TrainingOptions& options, const Mesh& mesh, const Numerics& numerics);
std::unique_ptr<Reducer> reducer_of(const TrainingOptions& options, Buckets& buckets, ReductionListener& listener);

}  // namespace chorale
