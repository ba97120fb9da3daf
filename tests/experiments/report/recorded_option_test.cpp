// Tests that reports compare runs by what each option says that it changes: the options of `train`, the curves of loss, the
// labels, and records with settings that this program does not know.
#include "experiments/report/recorded_option.hpp"

#include <chorale/named.hpp>
#include "experiments/common/command.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/labels.hpp"
#include "experiments/report/metric.hpp"
#include "src/base/text.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::report;
using Settings = std::map<std::string, std::string>;

namespace {

RecordedRun run_of(const std::string& label, const Settings& settings, const std::string& last_loss) {
  RecordedRun run{.id = label, .label = label, .command = "train", .settings = settings};
  const auto column = [](const char* name, std::vector<std::string> cells) {
    return Variable{name, "1", {"step"}, {2}, std::move(cells)};
  };
  run.tables["train"] = {column("step", {"1", "2"}), column("tokens", {"64", "64"}), column("time", {"0.1", "0.2"}),
                         column("loss", {"6", last_loss})};
  return run;
}

// The last column of the table of losses for the second run: its largest difference from the first.
std::string difference(const Settings& first, const Settings& second) {
  const RecordSet records{.runs = {run_of("dp1", first, "5.5"), run_of("dp2", second, "5.25")}};
  const auto figure = row_named(all_figures(), "figure", "loss").make(records);
  REQUIRE(figure);
  const std::string row = split(trim(figure->numbers.print("csv", 0)), '\n').at(2);
  return trim(row.substr(row.rfind(',') + 1));
}

}  // namespace

TEST_CASE("every option of train says what it changes") {
  const DeclaredCommand train(find_command("train"));
  for (const Option& option : train.options.all()) {
    INFO(option.name);
    CHECK(option.effect != Effect::unstated);
  }
}

TEST_CASE("losses are compared only between runs whose settings change no loss") {
  const Settings base{{"layout", "dp1"}, {"hidden-size", "96"}, {"seed", "1"}};
  const auto with = [&](const std::string& key, const std::string& value) {
    Settings settings = base;
    settings[key] = value;
    return settings;
  };
  for (const auto& [key, value] : Settings{{"layout", "dp2"},
                                           {"threads", "3"},
                                           {"backend", "ucx"},
                                           {"log-interval", "7"},
                                           {"micro-batch-size", "2"},
                                           {"recompute", "full"}})
    CHECK(difference(base, with(key, value)) == "0.25");
  for (const auto& [key, value] : Settings{{"hidden-size", "192"},
                                           {"ffn-hidden-size", "1024"},
                                           {"num-attention-heads", "8"},
                                           {"num-experts", "4"},
                                           {"moe-expert-capacity-factor", "1.25"},
                                           {"weight-decay", "0.5"},
                                           {"clip-grad", "2"},
                                           {"adam-beta1", "0.5"},
                                           {"document-mask", "random:9"},
                                           {"untie-embeddings", "true"},
                                           {"grad-dtype", "bf16"},
                                           {"min-lr", "0.1"}}) {
    INFO(key);
    CHECK(difference(base, with(key, value)) == "-");
  }
  CHECK(difference(base, with("weight-decay", option_of("train", "weight-decay")->initial)) ==
        "0.25");  // an older record lacks the option
  CHECK(difference(with("an-old-option", "1"), with("an-old-option", "2")) == "-");
  CHECK(difference(with("an-old-option", "1"), with("an-old-option", "1")) == "0.25");
}

TEST_CASE("a setting that changes only learning ranks runs by their loss") {
  CHECK(metric_for({"lr", "layout"}) == by_loss);
  CHECK(metric_for({"moe-router-score-function"}) == by_loss);
  CHECK(metric_for({"hidden-size", "layout", "threads", "an-old-option"}) == by_speed);
  const std::set<std::string> differing{"grad-dtype", "layout", "moe-expert-capacity-factor", "seed", "threads"};
  CHECK(that_change_learning(differing) == std::vector<std::string>{"grad-dtype", "moe-expert-capacity-factor"});
}

TEST_CASE("labels name the settings in which runs differ, but no folders, and the shape as a whole") {
  std::vector<RecordedRun> runs{
      run_of("", {{"layout", "dp1"}, {"hidden-size", "96"}, {"num-layers", "4"}, {"run-dir", "a"}, {"old", "x"}}, "5"),
      run_of("", {{"layout", "dp1"}, {"hidden-size", "192"}, {"num-layers", "4"}, {"run-dir", "b"}, {"old", "y"}}, "5")};
  label_all(runs, by_speed);
  CHECK((runs[0].label == "dp1, 4×96, x" && runs[1].label == "dp1, 4×192, y"));
  CHECK(tells_runs_apart("bench", "repetitions"));
  CHECK(!tells_runs_apart("bench", "order"));
}
