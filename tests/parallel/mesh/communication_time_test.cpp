// Tests the communication time of a rank, which must not count overlapping calls twice. The phases of a step must add up to
// at most the duration of the step.
#include "parallel/mesh/communication_time.hpp"

#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

TEST_CASE("seconds with several calls in flight count once, and seconds spent waiting are exposed, not hidden") {
  CommunicationTime time;
  time.call_begins(1);  // call a
  time.call_begins(3);  // call b
  time.wait_begins(4);  // for call a
  time.wait_ends(7);
  time.call_ends(7);
  time.wait_begins(8);  // for call b
  CHECK(time.until(9).exposed == 4);
  time.wait_ends(10);
  time.call_ends(10);
  const CommunicationTime::Seconds seconds = time.until(20);
  CHECK(seconds.exposed == 3 + 2);
  CHECK(seconds.hidden == 3 + 1);
}

std::string trouble_of(const StepResult& r, double seconds) {
  for (const auto& [name, phase] : {std::pair{"data", r.data},
                                    {"forward", r.forward},
                                    {"backward", r.backward},
                                    {"optimizer", r.optimizer},
                                    {"exposed", r.exposed},
                                    {"bubble", r.bubble},
                                    {"hidden", r.hidden}})
    if (!(phase >= 0)) return fmt::format("step {}: {} took {} seconds", r.step, name, phase);
  const double phases = r.data + r.forward + r.backward + r.optimizer + r.exposed + r.bubble, rounding = 1e-9;
  if (phases > seconds + rounding)
    return fmt::format("step {} took {} seconds, but its phases add up to {}", r.step, seconds, phases);
  const double beside = seconds - r.exposed - r.bubble;
  if (r.hidden > beside + rounding)
    return fmt::format("step {}: {} seconds of communication are hidden behind {} seconds of other work", r.step, r.hidden,
                       beside);
  return "";
}

TEST_CASE("the phases of a step, and its hidden communication, fit into the step's time", "[threads]") {
  const Layout layout = parse_layout(GENERATE("dp2", "dp2.z1", "dp2.z3", "dp1.tp2", "dp2.pp2.z1", "dp1.pp2"), 0);
  CAPTURE(to_string(layout));
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
          test::Run run(test::options_for("fast", layout), std::move(mesh), memory);
          for (int i = 0; i < 3; ++i) {
            const double begun = run.clock.seconds();
            const StepResult result = run.training.step(run.read);
            const std::string trouble = trouble_of(result, run.clock.seconds() - begun);
            if (!trouble.empty()) return trouble;
          }
          return std::string();
        }) == "");
}

}  // namespace
}  // namespace chorale
