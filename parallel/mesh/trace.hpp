// Records when a rank is active in selected steps. The trace contains the passes of the micro-batches, the layers and
// kernels in these passes, and every communication call.
//
//   passes          data ─ forward ───── backward ────────────────── optimizer ─
//   layers, kernels        │embedding│block.0│ …                        nested; noted by TracedWork (traced_work.hpp)
//   blocking call                │begins … ends│                                    exposed: all of it
//   started call                        │begins ┄ launched ┄┄┄┄┄ waited … ends│     exposed: its launch, and the wait for it
//   file                 │wait│                                   waits for the file of offloaded tensors, within the passes
//
// A started call can complete earlier than the trace shows, because the recorded end is the time when a wait or a test
// returns. All times are read from this rank's clock. If tracing is disabled, the cost is one branch per communication call
// and pass, and one virtual function call per layer and kernel. If tracing is enabled, each communication call, pass, layer
// and kernel adds one record, up to a limited number of records.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace chorale {

class Trace {
 public:
  enum class Kind : std::uint8_t { step, data, forward, backward, weights, optimizer, file };
  struct Span {
    Kind kind = Kind::step;
    std::int64_t step = 0, micro_batch = -1, chunk = -1;  // −1 if the span belongs to no micro-batch or chunk
    double begins = 0, ends = 0;
  };
  struct Inner {  // a layer or a kernel within a pass
    bool kernel = false;
    std::int64_t step = 0;
    std::string name;
    double begins = 0, ends = 0;
    double bytes = 0, flops = 0;                  // for a kernel
    std::int64_t m = 0, n = 0, k = 0, batch = 1;  // as in KernelWork
  };
  struct Call {
    std::int64_t step = 0;
    std::string axis, operation, algorithm, backend, dtype;
    std::int64_t bytes = 0;  // size of the input or the output, whichever is larger
    bool message = false;    // true for a message to or from one rank, false for a collective
    bool started = false;    // true for a nonblocking call
    double begins = 0, launched = 0, waited = 0, ends = 0;
    double exposed() const { return launched - begins + ends - waited; }
  };

  // Records all steps from `first` to `last`. At most `most` spans, `most` calls, and `most` layers and kernels are
  // recorded.
  void record(std::int64_t first, std::int64_t last, std::int64_t most);
  void begin(std::int64_t step) {
    step_ = step;
    on_ = step >= first_ && step <= last_;
  }
  void end() { on_ = false; }
  bool on() const { return on_; }

  void add(Span span) { keep(spans_, std::move(span)); }
  void add(Inner inner) { keep(inner_, std::move(inner)); }
  // Returns the call's number, or −1 if tracing is off or the limit is reached.
  std::int64_t add(Call call) { return keep(calls_, std::move(call)); }
  void over(std::int64_t call, double waited, double ends);  // sets the times when the wait for a call began and ended

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<Inner>& inner() const { return inner_; }  // an outer layer or kernel comes before its inner ones
  const std::vector<Call>& calls() const { return calls_; }
  std::int64_t left_out() const { return left_out_; }  // number of events that were not recorded because of the limit

 private:
  template <class Event>
  std::int64_t keep(std::vector<Event>& events, Event event) {
    const std::int64_t number = std::ssize(events);
    if (!on_ || number >= most_) {
      left_out_ += on_;
      return -1;
    }
    event.step = step_;
    events.push_back(std::move(event));
    return number;
  }
  std::int64_t first_ = 0, last_ = -1, most_ = 0, step_ = 0, left_out_ = 0;
  bool on_ = false;
  std::vector<Span> spans_;
  std::vector<Inner> inner_;
  std::vector<Call> calls_;
};

}  // namespace chorale
