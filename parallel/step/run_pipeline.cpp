#include "parallel/step/run_pipeline.hpp"

#include <algorithm>
#include <limits>

namespace chorale {
namespace {

class ScheduleRun {
 public:
  ScheduleRun(const PipelineSchedule& schedule, Axis& axis, const PipelinePart& part, Clock& clock)
      : schedule_(schedule), axis_(axis), part_(part), clock_(clock) {}

  PipelineTimes run() {
    const std::vector<PipelineAction>& actions = schedule_.actions.at(static_cast<std::size_t>(axis_.rank()));
    const bool may_run_ahead = std::ranges::all_of(actions, [](const auto& a) { return a.kind == Pass::forward; });
    for (; next_ < actions.size(); ++next_) {
      if (is_left_out(actions[next_].micro_batch)) continue;
      // A plan keeps each result until read_by, because a plan counts the worst case.
      std::erase_if(sends_, [this](Sent& sent) { return !axis_.pretends() && sent.call.test(); });
      for (; may_run_ahead && sends_.size() >= most_unread_results; sends_.erase(sends_.begin())) end(sends_.front());
      act(actions[next_]);
    }
    for (Sent& sent : sends_) sent.call.wait();
    require(flying_.empty(), "{} micro-batches are still in flight", flying_.size());
    return std::move(times_);
  }

 private:
  bool is_left_out(std::int64_t micro_batch) {
    if (part_.ends_before && micro_batch == begun_ && micro_batch < end_ && part_.ends_before(micro_batch))
      end_ = micro_batch;
    if (micro_batch >= end_) return true;
    begun_ = std::max(begun_, micro_batch + 1);
    return false;
  }

  struct Sent {
    Axis::Pending call;
    std::size_t read_by;  // see read_at_latest()
  };

  // Completes a send, so that its result can be freed.
  static bool end(Sent& sent) {
    if (!sent.call.test()) sent.call.wait();
    return true;
  }

  void act(const PipelineAction& action) {
    const std::pair key{action.micro_batch, action.chunk};
    if (action.kind == Pass::forward) flying_[key] = part_.open(action.micro_batch, action.chunk);
    MicroBatch& mine = *flying_.at(key);
    if (Meter* meter = mine.context.queue.meter) meter->begins({part_kind(action.kind), action.micro_batch, action.chunk});
    const std::int64_t held = mine.context.memory.ledger().current(Category::activations);
    if (mine.kept_inputs && action.kind == Pass::backward) mine.kept_inputs->read_ahead();
    Tensor message = receive(action, mine.context);
    std::erase_if(sends_, [this](Sent& sent) { return sent.read_by <= next_ && end(sent); });
    const TimingEvent begun = record_event(mine.context.queue, clock_);
    const double exposed = axis_.time().until(begun.host).exposed;
    const Tensor made = work(action, mine, std::move(message));
    const TimingEvent done = record_event(mine.context.queue, clock_);
    times_.passages.push_back({action, begun, done, axis_.time().until(done.host).exposed - exposed});
    const bool stays = send(action, made);
    if (mine.kept_inputs) mine.kept_inputs->finish_writes();
    if (action.kind == Pass::forward && action.chunk == 0)
      times_.activation_bytes =
          mine.context.memory.ledger().current(Category::activations) - held - (stays ? made.bytes() : 0);
    if (!mine.context.tape || action.kind == Pass::weights || (action.kind == Pass::backward && !schedule_.splits))
      flying_.erase(key);
  }

  Tensor work(const PipelineAction& action, MicroBatch& mine, Tensor message) {
    Sequence& layers = part_.chunks.at(static_cast<std::size_t>(action.chunk));
    Context& context = mine.context;
    if (action.kind == Pass::forward) return layers.forward(message ? message : mine.inputs, context);
    if (action.kind == Pass::weights) {
      for (const auto& gradient : mine.weight_gradients) {
        gradient();
        context.layer_is_done();
      }
      return {};
    }
    context.deferred_weight_gradients = schedule_.splits ? &mine.weight_gradients : nullptr;
    const Tensor dx = layers.backward(message, context);
    context.deferred_weight_gradients = nullptr;
    require(mine.tape.empty(), "the backward pass left something on the tape");
    require(!mine.kept_inputs || mine.kept_inputs->empty(), "the backward pass left inputs of blocks in the slow tier");
    return dx;
  }

  Tensor receive(const PipelineAction& action, Context& context) {
    const auto from = source_of(schedule_, {axis_.rank(), action});
    if (!from) return {};
    if (from->stage == axis_.rank()) return std::exchange(here_[{action.micro_batch, action.chunk}], {});
    const Tensor message = context.tensor(part_.message);
    const double exposed = axis_.time().until(clock_.seconds()).exposed;
    axis_.start_recv(message, static_cast<int>(from->stage)).wait();
    times_.waited += axis_.time().until(clock_.seconds()).exposed - exposed;
    return message;
  }

  // Sends the result to the stage that needs it. If a different chunk of this stage needs the result, sends no message and
  // returns true.
  bool send(const PipelineAction& action, const Tensor& made) {
    const auto to = taker_of(schedule_, {axis_.rank(), action});
    if (!to || !made) return false;
    if (to->stage == axis_.rank()) {
      here_[{to->action.micro_batch, to->action.chunk}] = made;
      return true;
    }
    made.count_as(Category::comm);
    sends_.push_back({axis_.start_send(made, static_cast<int>(to->stage)), part_.read_by[next_]});
    return false;
  }

  const PipelineSchedule& schedule_;
  Axis& axis_;
  const PipelinePart& part_;
  Clock& clock_;
  std::size_t next_ = 0;  // the action that runs now
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<MicroBatch>> flying_;
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> here_;  // results that a different chunk of this stage needs
  std::vector<Sent> sends_;
  PipelineTimes times_;
  std::int64_t begun_ = 0;                                       // number of micro-batches begun so far
  std::int64_t end_ = std::numeric_limits<std::int64_t>::max();  // the first micro-batch that is not run
};

}  // namespace

StepPart::Kind part_kind(Pass pass) {
  using Kind = StepPart::Kind;
  return pass == Pass::forward ? Kind::forward : pass == Pass::backward ? Kind::backward : Kind::weights;
}

PipelineTimes run_pipeline(const PipelineSchedule& schedule, Axis& axis, const PipelinePart& part, Clock& clock) {
  return ScheduleRun(schedule, axis, part, clock).run();
}

PipelineSchedule forward_only(const PipelineShape& shape) {
  PipelineSchedule all(shape);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    for (std::int64_t micro = 0; micro < shape.micro_batches; ++micro)
      for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) all.forward(stage, micro, chunk);
    std::ranges::sort(all.actions.at(static_cast<std::size_t>(stage)), {}, [&](const PipelineAction& a) {
      return std::pair{a.micro_batch * shape.chunks + shape.part(stage, a.chunk), a.chunk};
    });
  }
  return all;
}

}  // namespace chorale
