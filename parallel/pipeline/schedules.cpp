#include "parallel/pipeline/schedule.hpp"

namespace chorale {

namespace pipelines {
PipelineSchedule naive(const PipelineShape&);
PipelineSchedule gpipe(const PipelineShape&);
PipelineSchedule one_f_one_b(const PipelineShape&);
PipelineAlgorithm interleaved();
PipelineAlgorithm v_min();
PipelineSchedule zero_bubble_h1(const PipelineShape&);
}  // namespace pipelines

const std::vector<PipelineAlgorithm>& all_pipeline_schedules() {
  using namespace pipelines;
  static const std::vector<PipelineAlgorithm> table{
      {"naive", naive, "one micro-batch at a time goes forward and backward through all stages", wants_one_chunk},
      {"gpipe", gpipe, "all forward passes, then all backward passes; every activation is kept", wants_one_chunk},
      {"1f1b", one_f_one_b, "forward and backward passes alternate as early as possible; few activations are kept",
       wants_one_chunk},
      interleaved(),
      {"zb-h1", zero_bubble_h1,
       "1f1b with deferred weight gradients, which fill the bubble; all stages keep as much as 1f1b's first stage",
       wants_one_chunk},
      v_min(),
  };
  return table;
}

const PipelineAlgorithm* find_pipeline_schedule(const std::string& name) {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace chorale
