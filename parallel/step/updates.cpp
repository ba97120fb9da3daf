#include "parallel/step/updates.hpp"

#include <fmt/format.h>

#include "parallel/step/first_nan.hpp"

namespace chorale {

TierTraffic exposed_part(const TierTraffic& update, UpdateTime time) {
  if (time == UpdateTime::after) return update;
  if (time != UpdateTime::delayed) return {};
  constexpr auto values = static_cast<std::size_t>(Category::params), states = static_cast<std::size_t>(Category::optimizer);
  TierTraffic exposed;
  exposed.read[values] = update.read[values];
  exposed.written[values] = update.written[values];
  exposed.read[states] = update.read[states] - update.written[states];  // the update writes all states that it reads
  return exposed;
}

// A plan describes a step for which the assumed gradient factor is correct. A run never assumes a factor in its first step.
Updates::Updates(UpdateTime time, Optimizer& optimizer, const Numerics& numerics, const Queue& queue, bool plans)
    : optimizer_(optimizer), numerics_(numerics), queue_(queue), time_(time), confident_(plans) {}

void Updates::reuses(const Bucket& bucket) {
  if (time_ == UpdateTime::delayed) optimizer_.finish(bucket.number);
}

void Updates::has_sums(const Bucket& bucket) {
  if (begun_) optimizer_.start(bucket.number);
}

void Updates::begin(double rate, double usual) {
  usual_ = usual;
  begun_ = time_ == UpdateTime::overlapped || (time_ == UpdateTime::speculative && confident_);
  if (begun_) optimizer_.begin(rate, usual, numerics_, queue_);
}

void Updates::cancel(std::int64_t step) {
  if (!std::exchange(begun_, false)) return;
  optimizer_.finish();
  if (time_ == UpdateTime::overlapped)
    throw NotFinite(step, " produced Inf or NaN in its loss or gradients",
                    "the update overlapped the backward pass, so the step cannot be repeated to find the first one",
                    "use --update after or speculative: their errors name the layer", true);
  optimizer_.roll_back(queue_);
}

Updates::Done Updates::end(double rate, double scale, bool skipped) {
  Done done{.publishes = !skipped || time_ == UpdateTime::delayed};  // a delayed update of the previous step completes here
  confident_ = !skipped && scale == usual_;
  if (std::exchange(begun_, false)) {
    optimizer_.finish();
    done.sweeps = 1;
    if (confident_) return done;
    if (time_ == UpdateTime::overlapped)
      throw Error(Exit::runtime, "an update that overlapped the backward pass assumed another factor of the gradients",
                  fmt::format("assumed {:.9g}, it is {:.9g}: some tokens do not count", usual_, scale),
                  "use --update after or speculative for data with masked tokens");
    optimizer_.roll_back(queue_);
    done.rolled_back = 1;
  }
  if (time_ == UpdateTime::delayed) {
    optimizer_.finish();
    optimizer_.publish(queue_);
  }
  if (skipped) return done;
  ++done.sweeps;
  if (time_ == UpdateTime::delayed) {
    optimizer_.begin(rate, scale, numerics_, queue_);
    optimizer_.start();
  } else {
    optimizer_.step(rate, scale, numerics_, queue_);
  }
  return done;
}

}  // namespace chorale
