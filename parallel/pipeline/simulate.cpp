#include "parallel/pipeline/simulate.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/simulation/engine.hpp"

namespace chorale {
namespace {

// The engine knows the stages by their numbers, and reports a stage when its action ends.
class PipelineSimulation {
 public:
  PipelineSimulation(const PipelineSchedule& schedule, const PipelineSeconds& seconds)
      : schedule_(schedule),
        seconds_(seconds),
        next_(schedule.actions.size(), 0),
        begun_(schedule.actions.size(), -1),
        timeline_{schedule.stages, schedule.chunks, {}} {}

  PipelineTimeline run() {
    for (std::int64_t stage = 0; stage < schedule_.stages; ++stage) go_on(stage);
    engine_.run([this](int stage) { end(stage); });
    for (std::size_t stage = 0; stage < next_.size(); ++stage)
      require(next_[stage] == schedule_.actions[stage].size(), "stage {} of the pipeline waits forever", stage);
    return std::move(timeline_);
  }

 private:
  const PipelineAction& next_action(std::int64_t stage) const {
    return schedule_.actions[index(stage)][next_[index(stage)]];
  }

  // Begins the stage's next action if the stage is idle and the action's input is made.
  void go_on(std::int64_t stage) {
    if (begun_[index(stage)] >= 0 || next_[index(stage)] == schedule_.actions[index(stage)].size()) return;
    const PipelineAction& action = next_action(stage);
    double begins = engine_.now();
    if (const auto source = source_of(schedule_, {stage, action})) {
      const auto made = made_.find(key(source->stage, source->action));
      if (made == made_.end()) return;
      begins = std::max(begins, made->second + (source->stage == stage ? 0 : seconds_.message));
    }
    begun_[index(stage)] = begins;
    engine_.at(begins + seconds_of(stage, action), static_cast<int>(stage));
  }

  void end(std::int64_t stage) {
    const PipelineAction& action = next_action(stage);
    timeline_.events.push_back({stage, action, std::exchange(begun_[index(stage)], -1), engine_.now()});
    made_[key(stage, action)] = engine_.now();
    ++next_[index(stage)];
    go_on(stage);
    if (const auto taker = taker_of(schedule_, {stage, action})) go_on(taker->stage);
  }

  double seconds_of(std::int64_t stage, const PipelineAction& action) const {
    const PartSeconds& part = seconds_.parts.at(index(schedule_.part(stage, action.chunk)));
    if (action.kind == Pass::forward) return part.forward;
    if (action.kind == Pass::weights) return part.weights;
    return part.backward + (schedule_.splits ? 0 : part.weights);
  }

  using Key = std::tuple<std::int64_t, Pass, std::int64_t, std::int64_t>;
  static Key key(std::int64_t stage, const PipelineAction& action) {
    return {stage, action.kind, action.micro_batch, action.chunk};
  }

  const PipelineSchedule& schedule_;
  const PipelineSeconds& seconds_;
  std::vector<std::size_t> next_;  // indexed by stage: the action that runs, or that comes next
  std::vector<double> begun_;      // indexed by stage: when this action began; −1 if none runs
  std::map<Key, double> made_;     // end times of actions
  PipelineTimeline timeline_;
  Engine engine_;
};

}  // namespace

PipelineSeconds equal_parts(const PipelineShape& shape) {
  const double each = 1 / static_cast<double>(shape.chunks);
  return {std::vector<PartSeconds>(static_cast<std::size_t>(shape.parts()), {each, each, each}), 0};
}

PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineSeconds& seconds) {
  require(static_cast<std::int64_t>(seconds.parts.size()) == schedule.parts(),
          "times of {} parts do not fit a model of {} stages × {} chunks", seconds.parts.size(), schedule.stages,
          schedule.chunks);
  return PipelineSimulation(schedule, seconds).run();
}

double PipelineTimeline::begins() const {
  double first = events.empty() ? 0 : std::numeric_limits<double>::infinity();
  for (const PipelineEvent& event : events) first = std::min(first, event.begins);
  return first;
}

double PipelineTimeline::seconds() const {
  double last = begins();
  for (const PipelineEvent& event : events) last = std::max(last, event.ends);
  return last - begins();
}

double PipelineTimeline::idle(std::int64_t stage) const {
  double left = seconds();
  for (const PipelineEvent& event : events)
    if (event.stage == stage) left -= event.ends - event.begins;
  return left;
}

double PipelineTimeline::bubble() const {
  double idle_seconds = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) idle_seconds += idle(stage);
  const double all = seconds() * static_cast<double>(stages);
  return all > 0 ? idle_seconds / all : 0;
}

}  // namespace chorale
