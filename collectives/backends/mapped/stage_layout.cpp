#include "collectives/backends/mapped/stage_layout.hpp"

#include <algorithm>

#include "src/base/round_up.hpp"

namespace chorale::mapped {
namespace {

std::int64_t end_of(const Range& range) { return range.first + range.count; }

bool contains(const Range& piece, const Range& range) {
  return range.count > 0 && piece.place == range.place && piece.first <= range.first && end_of(range) <= end_of(piece);
}

bool is_staged(const Step& step, const StagingRule& staging) {
  return step.kind == Kind::send && step.src[0].count <= staging.most_elements;
}

// Returns the ranges of this place that are copied to the stage once. Staged messages that overlap or adjoin form one range.
// A range is left out if the schedule writes to it, or if the first of its sends must wait: then another send could come
// first.
std::vector<Range> kept(const Schedule& schedule, Place place, const StagingRule& staging) {
  std::vector<Range> sent;
  for (const Step& step : schedule.steps)
    if (is_staged(step, staging) && step.src[0].place == place && step.src[0].count > 0) sent.push_back(step.src[0]);
  std::ranges::sort(sent, {}, &Range::first);
  std::vector<Range> pieces;
  for (const Range& range : sent) {
    if (pieces.empty() || range.first > end_of(pieces.back())) pieces.push_back(range);
    pieces.back().count = std::max(end_of(pieces.back()), end_of(range)) - pieces.back().first;
  }
  std::erase_if(pieces, [&](const Range& piece) {
    const auto first = std::ranges::find_if(schedule.steps, [&](const Step& step) {
      return is_staged(step, staging) && step.src[0].place == place && contains(piece, step.src[0]);
    });
    return !first->after.empty() || std::ranges::any_of(schedule.steps, [&](const Step& step) {
      return step.kind != Kind::send && overlap(schedule.problem(), step.dst, piece);
    });
  });
  return pieces;
}

}  // namespace

StageLayout::StageLayout(const Schedule& schedule, const StagingRule& staging) {
  const auto take = [&](std::int64_t count) {
    const std::int64_t at = lines * staging.line_elements;
    lines += round_up(count, staging.line_elements) / staging.line_elements;
    return at;
  };
  struct Piece {
    Range range;
    std::int64_t at = -1;  // in the stage, once a send fills it
  };
  std::vector<Piece> pieces;
  for (const Place place : {Place::input, Place::output, Place::scratch})
    for (const Range& range : kept(schedule, place, staging)) pieces.push_back({range});
  for (const Step& step : schedule.steps) {
    Message& message = messages.emplace_back();
    if (!is_staged(step, staging)) continue;
    const Range& sent = step.src[0];
    const auto piece = std::ranges::find_if(pieces, [&](const Piece& one) { return contains(one.range, sent); });
    if (piece == pieces.end()) {
      message.fill = sent;
      message.at = message.fill_at = take(sent.count);
      continue;
    }
    if (piece->at < 0) {
      message.fill = piece->range;
      piece->at = message.fill_at = take(piece->range.count);
    }
    message.at = piece->at + sent.first - piece->range.first;
  }
}

}  // namespace chorale::mapped
