// A pipeline schedule lists each stage's actions in order, as plain data. The same object is proved correct (check.hpp),
// simulated (simulate.hpp), drawn (drawing.hpp) and executed (step/run_pipeline.hpp).
//
//   1f1b, 2 stages, 3 micro-batches      stage 0   F0 F1 B0 F2 B1 B2       F  forward
//                                        stage 1   F0 B0 F1 B1 F2 B2       B  backward
//
//   Some schedules split the backward pass into B, the gradient of the input, and W, the gradients of the weights.
//
// A stage can hold several chunks of the model. The number of model parts equals the number of chunks, and the schedule's
// placement assigns one part to each chunk. By default, chunk c of stage s is part c·stages + s, so a micro-batch visits all
// stages once per chunk. An action begins when its stage has finished the previous action and has received the message that
// this action needs. After an action, the stage sends the result immediately and does not wait for the receiver.
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
  std::int64_t micro_batch = 0, chunk = 0;  // chunk: index within its stage
  bool operator==(const PipelineAction&) const = default;
};

// The stage of a model part, and the index of its chunk within the stage.
struct PartPlace {
  std::int64_t stage, chunk;
  bool operator==(const PartPlace&) const = default;
};

// The mapping between parts of the model and chunks of stages. Each schedule has one placement.
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
  explicit PipelineSchedule(const PipelineShape& shape)
      : PipelineShape(shape), actions(static_cast<std::size_t>(shape.stages)) {}

  void forward(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::forward, micro_batch, chunk});
  }
  void backward(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::backward, micro_batch, chunk});
  }
  void weights(std::int64_t stage, std::int64_t micro_batch, std::int64_t chunk = 0) {
    add(stage, {Pass::weights, micro_batch, chunk});
  }

  bool splits = false;                               // whether weight gradients are separate actions
  std::vector<std::vector<PipelineAction>> actions;  // indexed by stage; each list is in order

 private:
  void add(std::int64_t stage, PipelineAction action) { actions.at(static_cast<std::size_t>(stage)).push_back(action); }
};

// An action and its stage. No message is sent between two actions of the same stage.
struct StagedAction {
  std::int64_t stage;
  PipelineAction action;
};

// source_of() returns the action whose result `taker` needs: an activation in the forward pass, a gradient in the backward
// pass. taker_of() returns the action that needs the result of `source`. Both functions return nullopt if there is no such
// action, as at the ends of the model and for weight gradients.
std::optional<StagedAction> source_of(const PipelineShape& shape, const StagedAction& taker);
std::optional<StagedAction> taker_of(const PipelineShape& shape, const StagedAction& source);

// The label of an action: "3" with one chunk per stage, "3a" with 2 to 26 chunks, "3.0" with more chunks.
std::string label_of(const PipelineAction& action, std::int64_t chunks);
std::string name_of(const PipelineAction& action, std::int64_t chunks);  // "F3", "B3a"
std::string describe(const PipelineSchedule& schedule);                  // one line per stage

// The widest list that contains a schedule which the user has not named.
enum class ListedIn : std::uint8_t {
  none,    // the schedule only teaches
  tables,  // tables of all layouts, but no search, because another schedule is as fast and keeps fewer activations
  searches
};

std::string wants_one_chunk(const PipelineShape& shape);  // the `misfit` of most schedules

// A row of the table of schedules. To add a schedule, add a file in this folder that ends with the row, and the row's
// declaration and place in schedules.cpp. Layout words, `plan --search`, `show`, `verify` and tests cover every row.
struct PipelineAlgorithm {
  const char* name;
  PipelineSchedule (*make)(const PipelineShape&);  // a pure function; use plan(), which also sets what the row says
  const char* about;                               // one line for `show pipeline`
  // The time in which a stage is idle during a step, in micro-batches of a stage: the time of one micro-batch's passes
  // through all chunks of a stage. All stages are alike, and F, B and W take equally long.
  double (*bubble)(const PipelineShape&);
  // The largest number of micro-batches whose activations a stage keeps at once. With several chunks, each chunk counts as
  // its share of a micro-batch.
  double (*in_flight)(const PipelineShape&);
  std::string (*misfit)(const PipelineShape&) = wants_one_chunk;  // "", or why the schedule does not fit this shape
  std::int64_t least_chunks = 1;                                  // minimum number of chunks per stage
  const Placement* placement = &around;
  bool splits = false;  // whether weight gradients are separate actions
  bool usual = false;   // whether a layout with at least `least_chunks` chunks has this schedule if it names none
  ListedIn listed_in = ListedIn::searches;

  PipelineSchedule plan(PipelineShape shape) const {
    shape.placement = placement;
    PipelineSchedule schedule = make(shape);
    schedule.splits = splits;
    return schedule;
  }
};

inline bool fits(const PipelineAlgorithm& row, const PipelineShape& shape) { return row.misfit(shape).empty(); }

const std::vector<PipelineAlgorithm>& all_pipeline_schedules();
const PipelineAlgorithm* find_pipeline_schedule(const std::string& name);  // nullptr if there is none
const PipelineAlgorithm& usual_schedule(std::int64_t chunks = 1);          // of layouts that name no schedule

}  // namespace chorale
