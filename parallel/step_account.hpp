// Where the seconds of a step go. The step records events as it enqueues its work. The rank waits for that work once per
// step; after the wait, the events become seconds: of the phases in the step's result, of the pipeline's events, and of the
// trace.
//
//   begun ─ clear gradients ─ cleared ─ passes ─ passed ─ reduce, ‖g‖ ─ reduced ─ (the one wait) ─ update
//
// On a device the update follows the wait, so its time becomes known, and is reported, with the next step.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/mesh.hpp"
#include "parallel/pipeline/run.hpp"
#include "parallel/trace.hpp"

namespace chorale {

struct StepResult {
  std::int64_t step = 0;  // from 1
  double loss = 0, gradient_norm = 0, rate = 0, loss_scale = 1;
  std::int64_t tokens = 0;
  bool skipped = false;
  // Seconds of this rank. The first six are disjoint and add up to the step: reading samples, the passes, all other
  // computation, waiting for collectives, waiting for other stages. `hidden` is the time in which communication was in
  // flight and the rank did not wait. On a device these are device times up to the step's one wait; the update counts in
  // the next step.
  double data = 0, forward = 0, backward = 0, optimizer = 0, exposed = 0, bubble = 0, hidden = 0;
};

class StepAccount {
 public:
  enum Mark { begun, cleared, passed, reduced };

  StepAccount(const Mesh& mesh, const Queue& queue, const Clock& clock) : mesh_(mesh), queue_(queue), clock_(clock) {}

  void begin(std::int64_t step);
  void mark(Mark mark) { edges_[mark] = edge(); }
  TimingEvent now() const { return record_event(queue_, clock_); }
  void opened(std::int64_t micro_batch, std::int64_t chunk, const TimingEvent& begins) {
    opened_.push_back({micro_batch, chunk, begins, now()});
  }
  void waited() { known_ = {edges_[reduced].moment, clock_.seconds()}; }  // all work enqueued before `reduced` is done
  void update_begins() { update_.emplace().begins = edge(); }
  void updated() { update_->updated = now(); }  // the optimizer is done; publishing follows
  void update_ends() { update_->ends = edge(); }
  void settle(const PipelineTimes& times, StepResult& result);

  const std::vector<PipelineEvent>& events() const { return events_; }  // of the newest step
  Trace& trace() { return trace_; }

 private:
  // An event, and the communication time up to it.
  struct Edge {
    TimingEvent moment;
    CommunicationTime::Seconds communicated;
  };
  struct Opened {
    std::int64_t micro_batch, chunk;
    TimingEvent begins, ends;
  };
  struct Update {
    Edge begins, ends;
    TimingEvent updated;
  };
  Edge edge() const {
    const TimingEvent moment = now();
    return {moment, mesh_.time().until(moment.host)};
  }
  double span(Trace::Kind kind, const TimingEvent& begins, const TimingEvent& ends, std::int64_t micro_batch = -1,
              std::int64_t chunk = -1);
  double computing(const Edge& begins, const Edge& ends) const;

  const Mesh& mesh_;
  const Queue queue_;
  const Clock& clock_;
  Trace trace_;
  std::array<Edge, 4> edges_;
  std::vector<Opened> opened_;     // micro-batches of this step
  std::optional<Update> update_;   // of this step
  std::optional<Update> earlier_;  // on a device: of the previous step
  CompletedEvent known_;
  std::vector<PipelineEvent> events_;
};

}  // namespace chorale
