// What a rank did in the steps it was asked to write down, and when: the passes of its micro-batches, and every call on every axis.
//
//   passes          data ─ forward ───── backward ────────────────── optimizer ─
//   blocking call                │begins … ends│                                    exposed: all of it
//   started call                        │begins ┄ launched ┄┄┄┄┄ waited … ends│     exposed: its launch, and the wait for it
//
// A call under way is over, here, when the rank learns it: in its wait, or when it asks. All times are by the rank's own clock. Off, it costs
// a branch for each call and each pass; on, some words of memory for each, and no more of them than there is room for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace chorale {

class Trace {
 public:
  enum class Kind : std::uint8_t { step, data, forward, backward, weights, optimizer };
  struct Span {
    Kind kind = Kind::step;
    std::int64_t step = 0, micro_batch = -1, chunk = -1;  // −1: of none
    double begins = 0, ends = 0;
  };
  struct Call {
    std::int64_t step = 0;
    std::string axis, operation, algorithm, backend, dtype;
    std::int64_t bytes = 0;  // of the whole vector
    bool started = false;    // and waited for later
    double begins = 0, launched = 0, waited = 0, ends = 0;
    double exposed() const { return launched - begins + ends - waited; }
  };

  // Steps `first` … `last` are written down, up to `most` spans and as many calls.
  void record(std::int64_t first, std::int64_t last, std::int64_t most);
  void begin(std::int64_t step) { step_ = step, on_ = step >= first_ && step <= last_; }
  void end() { on_ = false; }
  bool on() const { return on_; }

  void add(Span span);
  std::int64_t add(Call call);  // its number, or −1 where there was no room
  void over(std::int64_t call, double waited, double ends);

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<Call>& calls() const { return calls_; }
  std::int64_t left_out() const { return left_out_; }

 private:
  bool takes(std::size_t so_many);
  std::int64_t first_ = 0, last_ = -1, most_ = 0, step_ = 0, left_out_ = 0;
  bool on_ = false;
  std::vector<Span> spans_;
  std::vector<Call> calls_;
};

}  // namespace chorale
