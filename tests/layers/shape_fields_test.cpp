// Tests the list of the fields of a shape: the options, and the settings of a stored model.
#include "layers/shape_fields.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/layers/changed_shape.hpp"

using namespace chorale;

TEST_CASE("the settings of a shape give the same shape") {
  for (const ModelShape& shape : {ModelShape(), test::changed_shape()}) {
    ModelShape made;
    Options options("chorale test");
    made.declare(options);
    for (const auto& [field, text] : settings_of(shape))
      if (!text.empty()) options.set({field.option, text, "the settings", Source::command_line});
    options.settle();  // refuses settings without effect
    CHECK(made == shape);
  }
}

TEST_CASE("every field of a shape has a setting of its own") {
  const auto all = settings_of(test::changed_shape()), plain = settings_of(ModelShape());
  std::set<std::string> options;
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].first.option);
    CHECK((options.insert(all[i].first.option).second && !all[i].second.empty() && all[i].second != plain[i].second));
  }
}

TEST_CASE("fields without effect have no setting: of experts in a dense model, of Llama in GPT-2") {
  const auto text_of = [](const ModelShape& shape, const std::string& option) -> std::string {
    for (const auto& [field, text] : settings_of(shape))
      if (field.option == option) return text;
    return "there is no such option";
  };
  ModelShape shape;
  CHECK((text_of(shape, "rotary-base").empty() && text_of(shape, "moe-router-topk").empty()));
  CHECK((text_of(shape, "num-experts") == "0" && text_of(shape, "untie-embeddings") == "false"));
  shape.family = ModelFamily::llama;
  shape.experts.count = 4;
  CHECK((text_of(shape, "rotary-base") == "10000" && text_of(shape, "moe-router-topk") == "2"));
  CHECK((text_of(shape, "moe-expert-capacity-factor") == "dropless" && text_of(shape, "routing") == "learned"));
  CHECK(text_of(shape, "moe-router-bias-update-rate").empty());
  shape.experts.bias = true;
  CHECK(text_of(shape, "moe-router-bias-update-rate") == "0.001");
}
