// Visits every pipeline schedule, with every shape that fits the schedule, up to a given size.
#pragma once
#include "parallel/pipeline/schedule.hpp"
#include "tests/catch.hpp"

namespace chorale::test {

template <class Visit>
void each_pipeline(std::int64_t most_stages, std::int64_t most_micro_batches, Visit visit) {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    for (std::int64_t p = 1; p <= most_stages; ++p)
      for (std::int64_t m = 1; m <= most_micro_batches; ++m)
        for (std::int64_t v = 1; v <= 3; ++v) {
          const PipelineShape shape{p, m, v};
          if (!fits(row, shape)) continue;
          INFO(row.name << ", " << p << " stages, " << m << " micro-batches, " << v << " chunks");
          visit(std::string(row.name), row.plan(shape));
        }
}

inline PipelineSchedule planned(const std::string& name, const PipelineShape& shape) {
  return find_pipeline_schedule(name)->plan(shape);
}

}  // namespace chorale::test
