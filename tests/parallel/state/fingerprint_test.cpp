// Tests the fingerprint of a run's state, which covers every copy of every tensor. If a copy differs from the owner's
// tensor, the fingerprint names the copy on every rank.
#include "parallel/state/fingerprint.hpp"

#include "parallel/state/resume.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

// After step 2, the rank that holds this copy changes one element of the copy. Returns an error text if the fingerprints are
// wrong, otherwise "".
std::string drifted(const std::string& word, const std::string& tensor, const std::string& copy) {
  const Layout layout = parse_layout(word, 0);
  return test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
    test::Run run(test::options_for("exact", layout), std::move(mesh), memory);
    for (int step = 1; step <= 2; ++step) {
      run.training.step(run.read);
      if (step == 2)
        for (const StateTensor& t : state_of(run.training))
          if (t.name == tensor && t.copy == copy) static_cast<float*>(t.data.data)[0] += 1;
      auto prints = fingerprint(run.training);
      prints.merge(gradient_fingerprint(run.training));
      for (const auto& [name, print] : prints)
        if (name.find('@') != std::string::npos && (step < 2 || name != tensor + "@" + copy))
          return fmt::format("step {}: {} is reported to differ", step, name);
      if (step == 2 && !prints.contains(tensor + "@" + copy)) return fmt::format("{}@{} is not reported", tensor, copy);
    }
    return "";
  });
}

TEST_CASE("the fingerprint names a differing copy in the step in which the copy changed", "[threads]") {
  CHECK(drifted("dp2", "block.0.attention.qkv.weight", "dp1") == "");
  CHECK(drifted("dp2.tp2", "moment1/norm.gain", "dp1.tp1") == "");
  CHECK(drifted("dp1.tp2", "norm.gain", "tp1") == "");
  CHECK(drifted("dp2.tp2.z1", "norm.gain", "tp1") == "");
  CHECK(drifted("dp1.pp2", "embedding.weight", "pp1") == "");
  CHECK(drifted("dp2.pp2.z1", "embedding.weight", "pp1") == "");
}

}  // namespace
}  // namespace chorale
