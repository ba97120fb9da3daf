// The measured pipeline of a run: the passes of the last step on all stages. These passes are recorded in /pipeline, and
// drawn above a simulation of the same schedule.
//
//   measured    the time of each pass, with the gaps in which stages waited
//   simulated   the same schedule if every pass takes the mean time of its kind, and messages take no time; if `measured`
//               differs, the cause is outside the schedule
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/step/training.hpp"

namespace chorale::train {

struct PipelineRow {
  std::int64_t rank = 0, stage = 0, micro_batch = 0, chunk = 0;
  std::uint8_t kind = 0;
  double t_start = 0, t_end = 0;
  static auto columns() {
    return std::tuple{column("rank", &PipelineRow::rank, "1", "rank of the world"),
                      column("stage", &PipelineRow::stage, "1", "stage of the pipeline"),
                      column("micro_batch", &PipelineRow::micro_batch, "1", "micro-batch of the step"),
                      column("chunk", &PipelineRow::chunk, "1", "chunk of the model on this stage"),
                      column("kind", &PipelineRow::kind, "", "kind of work", {"forward", "backward", "weights"}),
                      column("t_start", &PipelineRow::t_start, "s", "start, on rank 0's clock"),
                      column("t_end", &PipelineRow::t_end, "s", "end, on rank 0's clock")};
  }
};

PipelineRow row_of(std::int64_t rank, const PipelineEvent& event);
void record_pipeline(Recorder& recorder, const std::vector<PipelineRow>& rows);

struct MeasuredPipeline {
  PipelineTimeline measured, simulated;  // the pipeline of rank 0
  std::vector<PipelineRow> rows;         // the passes of all ranks
};

PipelineSeconds means_of(const PipelineTimeline& timeline,
                         const PipelineShape& shape);  // mean seconds per pass, for each part of the model and kind of pass

// Collective. `ranks` has the clock offset of each rank; only rank 0 needs it. Only rank 0 gets the result.
MeasuredPipeline measure_pipeline(const Training& training, const std::vector<RankFacts>& ranks);
// Called on rank 0. Records the passes and, if `draws` is set, prints both pictures.
void report_pipeline(RunRecord& run, const MeasuredPipeline& pipeline, bool draws);
std::string drawn(const MeasuredPipeline& pipeline);  // the pictures: measured, then simulated

}  // namespace chorale::train
