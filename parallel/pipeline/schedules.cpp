#include "parallel/pipeline/schedule.hpp"

namespace chorale {

namespace pipelines {
PipelineAlgorithm naive();
PipelineAlgorithm gpipe();
PipelineAlgorithm one_f_one_b();
PipelineAlgorithm interleaved();
PipelineAlgorithm zero_bubble_h1();
PipelineAlgorithm v_min();
}  // namespace pipelines

const std::vector<PipelineAlgorithm>& all_pipeline_schedules() {
  using namespace pipelines;
  static const std::vector<PipelineAlgorithm> table{naive(),       gpipe(),          one_f_one_b(),
                                                    interleaved(), zero_bubble_h1(), v_min()};
  return table;
}

const PipelineAlgorithm* find_pipeline_schedule(const std::string& name) {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    if (row.name == name) return &row;
  return nullptr;
}

const PipelineAlgorithm& usual_schedule(std::int64_t chunks) {
  const PipelineAlgorithm* usual = nullptr;
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    if (row.usual && row.least_chunks <= chunks && (!usual || row.least_chunks > usual->least_chunks)) usual = &row;
  return *usual;
}

}  // namespace chorale
