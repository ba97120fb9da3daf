// Measures how long the phases of a step take. The step records timing events while it enqueues its work. The host waits for
// the device once per step (and in expert layers). After this wait, the events are converted to times in seconds. These
// times are used in the step's result, in the pipeline's events and in the trace.
//
//   begun ─ clear gradients ─ cleared ─ passes ─ passed ─ reduce, ‖g‖ ─ reduced ─ (the one wait) ─ update
//
// The update is enqueued after the wait. So on a device, the duration of an update is known only in the next step, which
// reports that duration.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <chorale/train.hpp>
#include "parallel/mesh/mesh.hpp"
#include "parallel/step/run_pipeline.hpp"
#include "parallel/step/traced_work.hpp"

namespace chorale {

class StepAccount {
 public:
  enum Mark { begun, cleared, passed, reduced };

  StepAccount(const Mesh& mesh, const Queue& queue, const Clock& clock)
      : mesh_(mesh), queue_(queue), clock_(clock), work_(trace_, clock) {}

  void begin(std::int64_t step);
  void mark(Mark mark) { edges_[mark] = edge(); }
  TimingEvent now() const { return record_event(queue_, clock_); }
  void opened(std::int64_t micro_batch, std::int64_t chunk, const TimingEvent& begins) {
    opened_.push_back({micro_batch, chunk, begins, now()});
  }
  void waited() {  // the device has done all work up to `reduced`
    known_ = {edges_[reduced].moment, clock_.seconds()};
    work_.waited();
  }
  void update_begins() { update_.emplace().begins = edge(); }
  void updated() { update_->updated = now(); }  // the optimizer is done; the values are published next
  void update_ends() { update_->ends = edge(); }
  void settle(const PipelineTimes& times, StepResult& result);

  const std::vector<PipelineEvent>& events() const { return events_; }  // the pipeline's events of the newest step
  Trace& trace() { return trace_; }
  TracedWork& work() { return work_; }  // the layers and kernels that the step's queues report

 private:
  // A timing event, and the rank's communication time up to this event.
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
  TracedWork work_;
  std::array<Edge, 4> edges_;
  std::vector<Opened> opened_;     // when each micro-batch of this step was read
  std::optional<Update> update_;   // the update of this step
  std::optional<Update> earlier_;  // on a device: the update of the previous step
  CompletedEvent known_;
  std::vector<PipelineEvent> events_;
  bool settled_ = false;  // whether settle() has run for the newest step
};

}  // namespace chorale
