// Loads the checkpoint in TEST_FOLDER/golden on each of the TEST_LAYOUTS, and saves it again. golden_test.py has written
// this checkpoint, and compares the saved copies with the original.
#include "parallel/state/resume.hpp"
#include "src/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale::test {

TEST_CASE("load a golden checkpoint on several layouts and save it again", "[.golden-loader]") {
  const std::filesystem::path folder = needed("TEST_FOLDER");
  for (const std::string& word : split(needed("TEST_LAYOUTS"), ' ')) {
    const Layout layout = parse_layout(word, 0);
    const std::string trouble = on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
      Log log({.level = "off"});
      const Checkpoint golden = Checkpoint::open(folder / "golden", log, peers_of(mesh));
      TrainingOptions options = options_for("fast", layout);
      options.shape = golden.metadata().model;
      options.seed = golden.metadata().seed;
      Run run(options, std::move(mesh), memory);
      resume(run.training, golden);
      save_checkpoint(folder / word, metadata_of(run.training, "config"), state_to_save(run.training),
                      peers_of(run.training.mesh()));
      return std::string();
    });
    INFO(word);
    CHECK(trouble == "");
  }
}

}  // namespace chorale::test
