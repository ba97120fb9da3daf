// Tests samples that hold several documents. Training must give the same results as if each document had its own sample.
// Results must be bit-identical on every layout.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

constexpr std::int32_t end_of_text = 9;

// Trains one step on two texts of 7 and 9 tokens. If `together` is true, the texts fill one sample. In separate samples,
// each text is followed by padding. Padding tokens are not targets, and tokens of the text do not attend to them, because
// attention is causal.
StepResult step_on(const TrainingOptions& options, bool together) {
  HostMemory host;
  SystemClock clock;
  TrainingOptions o = options;
  o.batch.packed = together;
  o.batch.global = o.batch.micro = together ? 1 : 2;
  Training training(o, host, clock);
  return training.step([&](std::int64_t, std::int64_t samples, const SampleRows& rows) {
    std::vector<std::int32_t> text(17);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = 10 + static_cast<std::int32_t>(i * i % 40);
    text[6] = text[15] = end_of_text;
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::size_t i = 0; i < 16; ++i) {
        const bool second = i >= 7, ends = i == 6 || i == 15;
        const auto row = static_cast<std::size_t>(sample) * 16 + i;
        if (together) {
          rows.inputs[row] = text[i];
          rows.targets[row] = ends ? -1 : text[i + 1];
          rows.positions[row] = static_cast<std::int32_t>(second ? i - 7 : i);
        } else {
          const std::size_t first = sample == 0 ? 0 : 7, length = sample == 0 ? 7 : 9,
                            there = std::min(first + i, std::size_t{15});
          rows.inputs[row] = i < length ? text[there] : 30;
          rows.targets[row] = i + 1 < length ? text[there + 1] : -1;
        }
      }
  });
}

TEST_CASE("documents in one sample have the loss and the gradient of documents in samples of their own") {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama})
    for (const bool experts : {false, true}) {
      INFO(name_of(family) << (experts ? ", experts" : ""));
      TrainingOptions options = test::options_for("fast", {});
      options.shape = {family, 2, 6, 3, 48, 96, 16, 61};
      if (experts) options.shape.experts = {.count = 4, .chosen = 2, .ffn = 24};
      options.compute = DType::f64;
      const StepResult packed = step_on(options, true), alone = step_on(options, false);
      CHECK(packed.loss == Approx(alone.loss).epsilon(1e-13));
      CHECK(packed.gradient_norm == Approx(alone.gradient_norm).epsilon(1e-12));
    }
}

TEST_CASE("packed samples, some of whose ranks have no targets, have the bits of one rank", "[threads]") {
  const auto options_of = [](const Layout& layout, ModelFamily family) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape.family = family;
    options.shape.sequence = 37;
    options.batch.packed = true;
    return options;
  };
  test::Sample fifth(5);
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama}) {
    const test::Seen expected = test::train_alone(options_of({}, family));
    TrainingOptions whole = options_of({}, family);
    whole.batch.packed = false;
    CHECK(difference(expected, test::train_alone(whole)) != "");
    int ran = 0;
    for (const ContextScheme& scheme : context_schemes())
      for (const CutRow& cut : token_cuts())
        for (const char* word : {"dp2", "dp1.tp2.sp", "dp1.pp2", "dp1.cp2", "dp1.cp3.z3", "dp2.cp2.z1", "dp1.tp2.cp2",
                                 "dp1.pp2.cp2", "dp1.cp4"}) {
          const Layout layout = parse_layout(word, 0);
          TrainingOptions options = options_of(layout, family);
          options.context = {&scheme, &cut};
          if (!scheme.exact || !test::fits(options, layout)) continue;
          if (layout.context_ranks() == 1 && (scheme.name != context_schemes()[0].name || cut.name != token_cuts()[0].name))
            continue;
          INFO(name_of(family) << ", " << word << ", " << scheme.name << ", " << cut.name);
          ++ran;
          if (!fifth.takes()) continue;
          CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
                  return difference(expected, test::train(options, std::move(mesh), memory));
                }) == "");
        }
    CHECK(ran > 20);
  }
}

// With a contiguous partition, the first of two ranks has the first half of a sample. So all targets of this rank are early
// targets, which are masked.
TEST_CASE("samples of one document, of which one context rank has no targets, have the bits of one rank", "[threads]") {
  const auto options_of = [](const Layout& layout, const ContextScheme& scheme) {
    TrainingOptions options = test::options_for("exact", layout);
    options.context = {&scheme, &token_cut_named("contiguous")};
    return options;
  };
  const auto trained = [](const TrainingOptions& options, Mesh mesh, Memory& memory) {
    test::Run run(options, std::move(mesh), memory);
    run.read = [read = run.read, sequence = options.shape.sequence](std::int64_t first, std::int64_t samples,
                                                                    const SampleRows& rows) {
      read(first, samples, rows);
      mask_early_targets(rows.targets, sequence);
    };
    return run.steps(3).seen;
  };
  HostMemory host;
  const test::Seen expected = trained(options_of({}, context_scheme_named("gather")), Mesh(), host);
  CHECK(difference(expected, test::train_alone(options_of({}, context_scheme_named("gather")))) != "");
  for (const ContextScheme& scheme : context_schemes())
    for (const char* word : {"dp1.cp2", "dp2.cp2.z1", "dp1.cp3", "dp1.pp2.cp2"}) {
      const Layout layout = parse_layout(word, 0);
      const TrainingOptions options = options_of(layout, scheme);
      if (!scheme.exact || !test::fits(options, layout)) continue;
      INFO(word << ", " << scheme.name);
      const TokenCut cut(options.shape.sequence, layout.context_ranks(), options.context.cut);
      CHECK(cut.places(0).back() < options.shape.sequence * 2 / 3);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return difference(expected, trained(options, std::move(mesh), memory));
            }) == "");
    }
}

TEST_CASE("under ring, packed samples are within the tolerance of one rank", "[threads]") {
  const auto options_of = [](const Layout& layout) {
    TrainingOptions options = test::options_for("fast", layout);
    options.shape.sequence = 37;
    options.shape.dropout = 0;
    options.compute = DType::f64;
    options.batch.packed = true;
    options.context.scheme = &context_scheme_named("ring");
    return options;
  };
  const test::Seen expected = test::train_alone(options_of({}));
  for (const CutRow& cut : token_cuts())
    for (const char* word : {"dp1.cp2", "dp1.cp3", "dp2.cp2.z2"}) {
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = options_of(layout);
      options.context.cut = &cut;
      INFO(word << ", " << cut.name);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              const test::Seen seen = test::train(options, std::move(mesh), memory);
              for (std::size_t step = 0; step < seen.steps.size(); ++step)
                if (std::abs(seen.steps[step].loss / expected.steps[step].loss - 1) > 1e-11)
                  return fmt::format("step {}: loss {}, alone {}", step + 1, seen.steps[step].loss,
                                     expected.steps[step].loss);
              return "";
            }) == "");
    }
}

}  // namespace
}  // namespace chorale
