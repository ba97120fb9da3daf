// Where the seconds of a step go. The step notes moments as it asks for its parts; when the rank has waited for what it asked for, which it does
// once, they become seconds: of the phases in the step's result, of the events of its pipeline, and of its trace.
//
//   begun ─ clear gradients ─ cleared ─ passes ─ passed ─ reduce, ‖g‖ ─ reduced ─ (the one wait) ─ update
//
// On a device the update follows the wait: when it was done is known, and told, with the next step.
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
  // Seconds of this rank, which follow each other and are the step: its samples, the passes, all else that it computes, waiting for
  // collectives, waiting for other stages. Beside them: seconds in which communication was under way and the rank did not wait. On a device
  // they are its own, until the one wait of the step: the update that follows is told with the next step.
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
  void waited() { known_ = {edges_[reduced].moment, clock_.seconds()}; }  // all that was asked before `reduced` is done
  void update_begins() { update_.emplace().begins = edge(); }
  void updated() { update_->updated = now(); }  // this rank's part: what follows makes it known to all
  void update_ends() { update_->ends = edge(); }
  void settle(const PipelineTimes& times, StepResult& result);

  const std::vector<PipelineEvent>& events() const { return events_; }  // of the newest step
  Trace& trace() { return trace_; }                                     // of the steps that it is asked for

 private:
  // A moment, and what had been communicated until then.
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
  std::optional<Update> earlier_;  // of the one before, on a device
  CompletedEvent known_;
  std::vector<PipelineEvent> events_;
};

}  // namespace chorale
