// What changes from step to step: learning rates and the scale of f16 losses.
#include "layers/learning_rate.hpp"
#include "layers/loss_scaler.hpp"
#include "tests/catch.hpp"

namespace chorale {
namespace {

LearningRate rate(const char* decay) { return {.decay = decay, .peak = 1, .minimum = 0.1, .warmup = 10, .steps = 110}; }

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
  CHECK(rate("wsd").at(87) == 1);  // falls in the last fifth: from step 88
  CHECK(rate("wsd").at(99) == Approx(0.55));
  for (const char* decay : {"linear", "cosine", "wsd"}) {
    CHECK(rate(decay).at(110) == Approx(0.1));
    CHECK(rate(decay).at(1000) == Approx(0.1));
  }
}

TEST_CASE("a loss scale halves when patience is out and doubles after good steps") {
  LossScaler s{.dynamic = true, .scale = 1024, .growth_interval = 3, .hysteresis = 2, .patience = 2};
  CHECK(s.overflowed(true));  // the first is forgiven
  CHECK(s.scale == 1024);
  CHECK(s.overflowed(true));
  CHECK(s.scale == 512);
  CHECK(s.overflowed(true));  // no patience left: at once
  CHECK(s.scale == 256);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(s.overflowed(false));
  CHECK(s.scale == 256);
  CHECK_FALSE(s.overflowed(false));
  CHECK(s.scale == 512);
  CHECK(s.patience == 2);
  LossScaler lowest{.dynamic = true, .scale = 2, .hysteresis = 1, .patience = 1};
  CHECK(lowest.overflowed(true));
  CHECK(lowest.scale == 1);
  CHECK_FALSE(lowest.overflowed(true));  // no scale is to blame: not a step to skip but an error to name
  LossScaler still;
  CHECK_FALSE(still.overflowed(true));  // f32 and bf16 have none
}

}  // namespace
}  // namespace chorale
