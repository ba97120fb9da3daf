// Records the layers and kernels of traced steps in the trace. For work on a device, records timing events in the stream.
// The times of these events are known only after the step has waited for the device.
#pragma once
#include <string>
#include <vector>

#include "parallel/mesh/trace.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/math/timing_event.hpp"

namespace chorale {

class TracedWork final : public KernelTimer {
 public:
  TracedWork(Trace& trace, const Clock& clock) : trace_(trace), clock_(clock) {}

  bool begin(const Queue& queue, std::string_view name, const KernelWork& work) override;
  bool enter(const Queue& queue, const std::string& layer) override;
  void end() override;

  void waited() { complete_ = noted_.size(); }  // must be called when the device has completed all work recorded so far
  void forget() {
    noted_.clear();
    complete_ = 0;
  }
  // Moves completed work to the trace. Device work enqueued after waited() is kept and reported with the next step.
  void settle(const CompletedEvent& known);

 private:
  struct Noted {
    Trace::Inner inner;
    Queue queue;
    TimingEvent begins, ends;
  };
  bool open(const Queue& queue, Trace::Inner inner);

  Trace& trace_;
  const Clock& clock_;
  std::vector<Noted> noted_;
  std::vector<std::size_t> open_;  // indices of layers and kernels that have not ended
  std::size_t complete_ = 0;
};

}  // namespace chorale
