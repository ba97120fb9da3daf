#include "parallel/pipeline/schedule.hpp"

#include <fmt/format.h>

namespace chorale {
namespace {

std::optional<StagedAction> neighbor(const PipelineShape& shape, const StagedAction& of, std::int64_t parts_away) {
  if (of.action.kind == Pass::weights) return std::nullopt;  // no other action needs weight gradients
  const std::int64_t part = shape.part(of.stage, of.action.chunk) + parts_away;
  if (part < 0 || part >= shape.parts()) return std::nullopt;
  const PartPlace there = shape.place(part);
  return StagedAction{there.stage, {of.action.kind, of.action.micro_batch, there.chunk}};
}

}  // namespace

const Placement around{
    [](std::int64_t stages, const PartPlace& place) { return place.chunk * stages + place.stage; },
    [](std::int64_t stages, std::int64_t part) {
      return PartPlace{part % stages, part / stages};
    },
};

std::optional<StagedAction> source_of(const PipelineShape& shape, const StagedAction& taker) {
  return neighbor(shape, taker, taker.action.kind == Pass::forward ? -1 : 1);
}

std::optional<StagedAction> taker_of(const PipelineShape& shape, const StagedAction& source) {
  return neighbor(shape, source, source.action.kind == Pass::forward ? 1 : -1);
}

std::string label_of(const PipelineAction& action, std::int64_t chunks) {
  if (chunks == 1) return std::to_string(action.micro_batch);
  if (chunks > 26) return fmt::format("{}.{}", action.micro_batch, action.chunk);
  return fmt::format("{}{}", action.micro_batch, static_cast<char>('a' + action.chunk));
}

std::string name_of(const PipelineAction& action, std::int64_t chunks) {
  return "FBW"[static_cast<std::size_t>(action.kind)] + label_of(action, chunks);
}

std::string describe(const PipelineSchedule& schedule) {
  std::string text;
  for (std::size_t stage = 0; stage < schedule.actions.size(); ++stage) {
    text += fmt::format("stage {} ", stage);
    for (const PipelineAction& action : schedule.actions[stage]) text += " " + name_of(action, schedule.chunks);
    text += "\n";
  }
  return text;
}

std::string wants_one_chunk(const PipelineShape& shape) {
  return shape.chunks == 1 ? "" : fmt::format("it takes one chunk per stage, not {}", shape.chunks);
}

}  // namespace chorale
