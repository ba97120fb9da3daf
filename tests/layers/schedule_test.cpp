// Tests the values that change from step to step: the learning rate and the loss scale of f16.
#include <chorale/optimizer.hpp>
#include "layers/deepspeed_rate.hpp"
#include "tests/catch.hpp"

namespace chorale {
namespace {

LearningRate rate(const char* decay) {
  return {.decay = named<RateDecay>(decay), .peak = 1, .minimum = 0.1, .warmup = 10, .steps = 110};
}

TEST_CASE("learning rates rise for the warm-up and then follow their curve") {
  for (const char* decay : {"constant", "linear", "cosine", "wsd"}) {
    CHECK(rate(decay).at(0) == Approx(0.1));
    CHECK(rate(decay).at(9) == Approx(1));
    CHECK(rate(decay).at(10) == Approx(1));
  }
  CHECK(rate("constant").at(109) == 1);
  CHECK(rate("linear").at(60) == Approx(0.55));
  CHECK(rate("cosine").at(60) == Approx(0.55));
  CHECK(rate("cosine").at(35) == Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));
  CHECK(rate("wsd").at(87) == 1);  // the decay covers the last fifth and starts at step 88
  CHECK(rate("wsd").at(99) == Approx(0.55));
  for (const char* decay : {"linear", "cosine", "wsd"}) {
    CHECK(rate(decay).at(110) == Approx(0.1));
    CHECK(rate(decay).at(1000) == Approx(0.1));
  }
}

TEST_CASE("a warm-up may begin above 0 and rise logarithmically") {
  LearningRate r = rate("constant");
  r.first = 0.5;
  CHECK(r.at(0) == Approx(0.55));
  CHECK(r.at(4) == Approx(0.75));
  r.warmup = 8;
  r.warmup_style = WarmupStyle::log;  // at step k, ln (k + 1) / ln 8 of the warm-up is done
  CHECK(r.at(0) == 0.5);
  CHECK(r.at(1) == Approx(0.5 + 0.5 / 3));
  CHECK(r.at(3) == Approx(0.5 + 0.5 * 2 / 3));
  CHECK(r.at(7) == 1);
  r.warmup = 1;
  CHECK(r.at(0) == 1);
}

// The expected learning rates of DeepSpeed's schedulers are computed by hand, for a peak of 1, W = 8 warm-up steps and a
// total of T = 24 steps. DeepSpeed's step counter k is smaller by one than the step number of our run.
TEST_CASE("DeepSpeed's schedulers have DeepSpeed's rates") {
  LearningRate r{.decay = RateDecay::warmup_lr,
                 .peak = 1,
                 .minimum = 0.2,
                 .first = 0.1,
                 .warmup_style = WarmupStyle::log,
                 .warmup = 8,
                 .steps = 24};
  for (const char* decay : {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"}) {
    r.decay = named<RateDecay>(decay);
    r.warmup_style = WarmupStyle::log;
    CHECK(r.at(0) == (r.decay == RateDecay::warmup_cosine_lr ? 0 : 0.1));
    CHECK(r.at(1) == 0.1);                    // ln 1 is 0
    CHECK(r.at(2) == Approx(0.1 + 0.9 / 3));  // ln 2 / ln 8
    CHECK(r.at(4) == Approx(0.1 + 0.9 * 2 / 3));
    CHECK(r.at(8) == Approx(1));
    r.warmup_style = WarmupStyle::linear;
    CHECK(r.at(1) == 0.1);
    CHECK(r.at(2) == Approx(0.1 + 0.9 / 8));
    CHECK(r.at(8) == Approx(0.1 + 0.9 * 7 / 8));
  }
  r.decay = RateDecay::warmup_lr;
  CHECK((r.at(9) == 1 && r.at(1000) == 1));
  r.decay = RateDecay::warmup_decay_lr;
  CHECK(r.at(9) == 1);
  CHECK(r.at(17) == Approx(0.55));  // k = 16: halfway from 8 to 24
  CHECK((r.at(25) == 0.1 && r.at(1000) == 0.1));
  r.decay = RateDecay::warmup_cosine_lr;
  CHECK(r.at(16) == Approx(0.6));  // k − W + 1 = 8, halfway to T − W = 16
  CHECK(r.at(12) == Approx(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2));
  CHECK((r.at(24) == Approx(0.2) && r.at(1000) == Approx(0.2)));
}

TEST_CASE("DeepSpeed's warm-up takes at least two steps, and a schedule may consist of warm-up only") {
  for (const std::int64_t warmup : {0, 1, 2}) {
    LearningRate r{.decay = RateDecay::warmup_lr, .peak = 1, .warmup_style = WarmupStyle::log, .warmup = warmup};
    CHECK((r.at(1) == 0 && r.at(2) == Approx(1) && r.at(3) == 1));
  }
  LearningRate r{.decay = RateDecay::warmup_decay_lr, .peak = 1, .warmup = 10, .steps = 10};
  CHECK(r.at(11) == 0);
  r.decay = RateDecay::warmup_cosine_lr;
  r.minimum = 0.25;
  CHECK(r.at(11) == Approx(0.25));
}

TEST_CASE("a loss scale halves when patience runs out and doubles after good steps") {
  LossScaler s{.dynamic = true, .scale = 1024, .growth_interval = 3, .hysteresis = 2, .patience = 2};
  CHECK(s.overflowed(true));  // patience is 2, so the first overflow keeps the scale
  CHECK(s.scale == 1024);
  CHECK(s.overflowed(true));
  CHECK(s.scale == 512);
  CHECK(s.overflowed(true));  // no patience is left, so the scale halves
  CHECK(s.scale == 256);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(s.overflowed(false));
  CHECK(s.scale == 256);
  CHECK_FALSE(s.overflowed(false));
  CHECK(s.scale == 512);
  CHECK(s.patience == 2);
  LossScaler lowest{.dynamic = true, .scale = 2, .hysteresis = 1, .patience = 1};
  CHECK(lowest.overflowed(true));
  CHECK(lowest.scale == 1);
  CHECK_FALSE(lowest.overflowed(true));  // a scale of 1 cannot shrink, so the step fails instead of being skipped
  LossScaler still;
  CHECK_FALSE(still.overflowed(true));  // f32 and bf16 do not scale the loss
}

}  // namespace
}  // namespace chorale
