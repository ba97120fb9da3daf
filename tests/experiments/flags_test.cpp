// The presets of `chorale train`: the shapes that they set, and values that change if other options are given with the
// preset.
#include "experiments/train/flags.hpp"

#include "src/base/settings.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

ModelShape shape_of(const std::vector<std::string>& arguments) {
  Options options{"chorale test"};
  train::Flags flags;
  flags.declare(options);
  resolve(options, arguments, {}, {}, train::presets());
  return flags.training(1, {}).shape;
}

}  // namespace

TEST_CASE("a preset has the shape of its row in the table") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    const ModelShape &want = preset.shape, made = shape_of({"--preset", preset.name});
    CHECK((made.groups == want.groups && made.ffn == want.ffn && made.parameters() == want.parameters()));
    CHECK(made.experts == want.experts);
  }
}

TEST_CASE("an option given with a preset changes the values that follow from the option") {
  CHECK(shape_of({"--preset", "nano", "--num-attention-heads", "12"}).groups == 12);
  CHECK(shape_of({"--preset", "nano", "--hidden-size", "768"}).ffn == 3072);
  CHECK(shape_of({"--preset", "nano", "--hidden-size", "768", "--num-experts", "4"}).experts.ffn == 3072);
  CHECK(shape_of({"--preset", "nano-moe", "--num-experts", "16", "--moe-router-topk", "4"}).experts.chosen == 4);
  // nano-llama sets the number of groups itself.
  CHECK(shape_of({"--preset", "nano-llama", "--num-attention-heads", "12"}).groups == 2);
}
