// The pipeline of a run as it was measured: the events of the newest step from all stages, recorded in /pipeline, and drawn
// beside what the schedule comes to with the times its parts took.
//
//   measured    what happened, waiting included
//   simulated   the same schedule with mean durations; the schedule does not explain the difference to `measured`
#pragma once
#include "experiments/run_record.hpp"
#include "parallel/training.hpp"

namespace chorale::train {

struct PipelineRow {
  std::int64_t rank = 0, stage = 0, micro_batch = 0, chunk = 0;
  std::uint8_t kind = 0;
  double t_start = 0, t_end = 0;
  static auto columns() {
    return std::tuple{column("rank", &PipelineRow::rank, "1", "of the world"),
                      column("stage", &PipelineRow::stage, "1", "of the pipeline"),
                      column("micro_batch", &PipelineRow::micro_batch, "1", "of the step"),
                      column("chunk", &PipelineRow::chunk, "1", "of the stage's share of the model"),
                      column("kind", &PipelineRow::kind, "", "what was done", {"forward", "backward", "weights"}),
                      column("t_start", &PipelineRow::t_start, "s", "by rank 0's clock"),
                      column("t_end", &PipelineRow::t_end, "s", "by rank 0's clock")};
  }
};

struct MeasuredPipeline {
  PipelineTimeline measured, simulated;  // of the pipeline of rank 0
  std::vector<PipelineRow> rows;         // of all ranks
};

PipelineSeconds means_of(const PipelineTimeline& timeline,
                         const PipelineShape& shape);  // every part as long as it took in the mean

// Collective; rank 0 gets it.
MeasuredPipeline measure_pipeline(const Training& training, const std::vector<RankFacts>& ranks);
// On rank 0: into the record and, if it `draws`, on the terminal as two pictures.
void report_pipeline(RunRecord& run, const MeasuredPipeline& pipeline, bool draws);

}  // namespace chorale::train
