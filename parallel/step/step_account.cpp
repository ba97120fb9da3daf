#include "parallel/step/step_account.hpp"

#include <algorithm>
#include <utility>

namespace chorale {
namespace {

Trace::Kind kind_of(Pass pass) {
  return pass == Pass::forward    ? Trace::Kind::forward
         : pass == Pass::backward ? Trace::Kind::backward
                                  : Trace::Kind::weights;
}

}  // namespace

void StepAccount::begin(std::int64_t step) {
  trace_.begin(step);
  // Leftover records are dropped if the last step threw an error or tracing is off. Otherwise the leftover records describe
  // device work of the previous step, which is reported with this step.
  if (!std::exchange(settled_, false) || !trace_.on()) work_.forget();
  opened_.clear();
  update_.reset();
  mark(begun);
}

double StepAccount::span(Trace::Kind kind, const TimingEvent& begins, const TimingEvent& ends, std::int64_t micro_batch,
                         std::int64_t chunk) {
  const double from = known_.seconds(begins), to = known_.seconds(ends);
  trace_.add({kind, 0, micro_batch, chunk, from, to});
  return to - from;
}

double StepAccount::computing(const Edge& begins, const Edge& ends) const {
  const double exposed = ends.communicated.exposed - begins.communicated.exposed;
  return known_.seconds(ends.moment) - known_.seconds(begins.moment) - exposed;
}

void StepAccount::settle(const PipelineTimes& times, StepResult& result) {
  if (queue_.device)
    std::swap(update_, earlier_);
  else
    mark(reduced);  // on the host, the update is complete and is reported with this step

  for (const auto& [micro_batch, chunk, begins, ends] : opened_)
    result.data += span(Trace::Kind::data, begins, ends, micro_batch, chunk);
  events_.clear();
  for (const auto& [action, begins, ends, waits] : times.passages) {
    const double seconds = span(kind_of(action.kind), begins, ends, action.micro_batch, action.chunk);
    (action.kind == Pass::forward ? result.forward : result.backward) += seconds - waits;
    events_.push_back({mesh_.pipeline().rank(), action, known_.seconds(begins), known_.seconds(ends)});
  }
  if (update_) span(Trace::Kind::optimizer, update_->begins.moment, update_->updated);
  span(Trace::Kind::step, edges_[begun].moment, edges_[reduced].moment);
  if (trace_.on()) work_.settle(known_);
  trace_.end();
  settled_ = true;

  const auto& [at_first, at_cleared, at_passed, at_last] = edges_;
  result.optimizer = computing(at_first, at_cleared) + computing(at_passed, at_last);
  result.exposed = at_last.communicated.exposed - at_first.communicated.exposed;
  if (update_ && queue_.device) {
    result.optimizer += computing(update_->begins, update_->ends);
    result.exposed += update_->ends.communicated.exposed - update_->begins.communicated.exposed;
  }
  result.bubble = times.waited;
  result.exposed = std::max(0.0, result.exposed - result.bubble);  // exposed time contains the bubble, but rounding can make
                                                                   // the difference negative
  result.hidden = at_last.communicated.hidden - at_first.communicated.hidden;
}

}  // namespace chorale
