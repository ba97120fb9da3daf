// A pipeline schedule says in which order every stage works on which micro-batch, as plain data: it is proved (check.hpp), simulated,
// drawn and executed from this one value.
//
//   1f1b, 2 stages, 3 micro-batches      stage 0   F0 F1 B0 F2 B1 B2       F  forward        W  gradients of the weights, where they
//                                        stage 1   F0 B0 F1 B1 F2 B2       B  backward          are apart: B is then the input's alone
//
// A stage may hold several chunks of the model. Which parts of the model they are is the schedule's placement: by default chunk c of stage s is
// part number c·stages + s, so that a micro-batch goes around all stages once for every chunk. An action begins when its stage is done with the one before it and the message it needs is
// in; what it made is sent off at once, and nobody waits until it has arrived.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorale {

enum class Pass : std::uint8_t { forward, backward, weights };
inline constexpr const char* pass_names[] = {"forward", "backward", "weights"};

struct PipelineAction {
  Pass kind = Pass::forward;
  std::int64_t micro_batch = 0, chunk = 0;  // chunk: of this stage's own
  bool operator==(const PipelineAction&) const = default;
};

// Where a part of the model lies: a chunk of a stage.
struct PartPlace {
  std::int64_t stage, chunk;
  bool operator==(const PartPlace&) const = default;
};

// Which part of the model each chunk of each stage is, and back: a row's, and a property of the schedule.
struct Placement {
  std::int64_t (*part)(std::int64_t stages, const PartPlace& place);
  PartPlace (*place)(std::int64_t stages, std::int64_t part);
};
extern const Placement around;  // chunk c of stage s is part c·stages + s

struct PipelineShape {
  std::int64_t stages = 1, micro_batches = 1, chunks = 1;
  const Placement* placement = &around;
  std::int64_t part(std::int64_t stage, std::int64_t chunk) const { return placement->part(stages, {stage, chunk}); }
  PartPlace place(std::int64_t part) const { return placement->place(stages, part); }
  std::int64_t parts() const { return chunks * stages; }
};

struct PipelineSchedule : PipelineShape {
  explicit PipelineSchedule(const PipelineShape& shape, bool splits_backward = false)
      : PipelineShape(shape), splits(splits_backward), actions(static_cast<std::size_t>(shape.stages)) {}

  void forward(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::forward, micro_batch, chunk});
  }
  void backward(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::backward, micro_batch, chunk});
  }
  void weights(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::weights, micro_batch, chunk});
  }

  bool splits;                                       // whether the gradients of the weights are actions of their own
  std::vector<std::vector<PipelineAction>> actions;  // by stage, in order

 private:
  void add(std::int64_t stage, PipelineAction action) { actions.at(static_cast<std::size_t>(stage)).push_back(action); }
};

// An action and the stage that does it. Between two of one stage nothing is sent.
struct StagedAction {
  std::int64_t stage;
  PipelineAction action;
};

// Whose activation (forward) or gradient (backward) an action needs, and who needs what it makes; nobody at the model's ends.
std::optional<StagedAction> source_of(const PipelineShape& shape, const StagedAction& taker);
std::optional<StagedAction> taker_of(const PipelineShape& shape, const StagedAction& source);

std::string label_of(const PipelineAction& action, std::int64_t chunks);  // "3", of several chunks "3a" or, beyond z, "3.26"
std::string name_of(const PipelineAction& action, std::int64_t chunks);   // "F3", "B3a"
std::string describe(const PipelineSchedule& schedule);                   // a line a stage

// A row of the table: to add a schedule, a file beside this one and its line in schedules.cpp. Tests, `show` and `verify` go through it.
struct PipelineAlgorithm {
  const char* name;
  PipelineSchedule (*make)(const PipelineShape&);  // pure; call plan()
  const char* about;
  std::string (*misfit)(const PipelineShape&);  // "", or why it cannot be planned for this shape
  std::int64_t least_chunks = 1;                // of the model on a stage
  const Placement* placement = &around;

  PipelineSchedule plan(PipelineShape shape) const { return shape.placement = placement, make(shape); }
};

inline bool fits(const PipelineAlgorithm& row, const PipelineShape& shape) { return row.misfit(shape).empty(); }
std::string wants_one_chunk(const PipelineShape& shape);  // the misfit of most

const std::vector<PipelineAlgorithm>& all_pipeline_schedules();
const PipelineAlgorithm* find_pipeline_schedule(const std::string& name);  // nullptr where there is none of that name

}  // namespace chorale
