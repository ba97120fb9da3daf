// Trains ten steps of every preset whose name begins with "tiny", and three steps in f64 of models with experts. Writes the
// results into files. torch_test.py compares these files with results of PyTorch. experiments/peers/transformers_models.py
// compares them with results of Hugging Face's transformers library. Each model has a folder in $TEST_FOLDER. The folder
// contains `start` and `end` (the parameters in the Hugging Face format), `gradient-N` for each step N from 0, and
// numbers.json (batches, losses and logits).
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "parallel/generation/generation.hpp"
#include "parallel/state/stored_weights.hpp"
#include "parallel/step/training.hpp"
#include "src/data/synthetic.hpp"
#include "tests/spmd.hpp"

namespace chorale {
namespace {

NamedTensors weights(Training& training) {
  NamedTensors all;
  training.optimizer().each_state([&](const std::string& name, const Owned& owned, const Tensor& tensor) {
    if (name.find('/') == std::string::npos) all.emplace(name, tensor.view(owned.parameter->shape));
  });
  return all;
}

NamedTensors gradients(const Training& training) {
  NamedTensors all;
  for (const ParameterPointer& p : training.parameters()) all.emplace(p->name, p->gradient);
  return all;
}

void dump(const ModelShape& shape, DType dtype, int count, const std::filesystem::path& folder) {
  TrainingOptions o;
  o.shape = shape;
  o.compute = dtype;
  o.batch.global = 6;
  o.batch.micro = 3;
  o.optimizer.rate = {.decay = RateDecay::linear, .peak = 1e-3, .minimum = 1e-4, .warmup = 3, .steps = 10};
  HostMemory host;
  SystemClock clock;
  Training training(o, host, clock);
  export_folder(folder / "start", o.shape, weights(training), dtype);

  const SyntheticLanguage language(o.shape.vocabulary, 3);
  nlohmann::json steps = nlohmann::json::array();
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> ids, next;
    const StepResult result = training.step([&](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
      std::vector<std::int64_t> which;
      for (std::int64_t s = 0; s < samples; ++s) which.push_back(first + s);
      fill_batch(language, which, o.shape.sequence, rows);
      rows.targets[static_cast<std::size_t>(i)] = -1;  // one target of each micro-batch is masked
      ids.insert(ids.end(), rows.inputs.begin(), rows.inputs.end());
      next.insert(next.end(), rows.targets.begin(), rows.targets.end());
    });
    export_folder(folder / fmt::format("gradient-{}", i), o.shape, gradients(training), dtype);
    steps.push_back({{"ids", ids},
                     {"targets", next},
                     {"loss", result.loss},
                     {"norm", result.gradient_norm},
                     {"rate", result.rate},
                     {"tokens", result.tokens}});
  }
  // The logits of one more text. A Generator loads the exported parameters from `end`, reads the text token by token, and
  // returns the logits after each token.
  export_folder(folder / "end", o.shape, weights(training), dtype);
  Ledger ledger;
  Allocator memory(host, ledger);
  Generator generator({.shape = o.shape, .compute = dtype}, Mesh(), host);
  Log log({.level = "off"});
  StoredWeights(folder / "end", memory, log).read(generator.weights(), {});
  std::vector<std::int32_t> text(static_cast<std::size_t>(o.shape.sequence));
  language.read(999, text);
  nlohmann::json logits = nlohmann::json::array();
  for (const std::int32_t token : text) logits.push_back(generator.read({token}));
  std::ofstream(folder / "numbers.json") << nlohmann::json{{"steps", steps},
                                                           {"decay", o.optimizer.decay},
                                                           {"beta1", o.optimizer.beta1},
                                                           {"beta2", o.optimizer.beta2},
                                                           {"epsilon", o.optimizer.epsilon},
                                                           {"clip", o.optimizer.clip},
                                                           {"text", text},
                                                           {"logits", logits},
                                                           {"balance", o.shape.experts.balance},
                                                           {"z", o.shape.experts.z}};
}

// The choice of experts is not continuous. If two scores are nearly equal, Chorale and PyTorch can choose different experts
// in f32. So these models train in f64.
void dump_experts(const std::filesystem::path& folder) {
  ModelShape mixtral{ModelFamily::llama, 2, 8, 4, 48, 96, 24, 240};
  mixtral.tied = false;
  mixtral.experts = {.count = 6, .chosen = 2, .ffn = 32};
  dump(mixtral, DType::f64, 3, folder / "mixtral");
  mixtral.experts.balance = 0.3;
  mixtral.experts.z = 0.05;
  dump(mixtral, DType::f64, 3, folder / "mixtral-losses");
  ModelShape qwen = mixtral;
  qwen.head = 10;
  qwen.qk_norm = true;
  qwen.epsilon = 1e-6;
  qwen.experts = {.count = 6, .chosen = 3, .ffn = 24, .every = 2, .balance = 0.2};  // only one block has experts, so there
                                                                                    // is no mean over blocks
  dump(qwen, DType::f64, 3, folder / "qwen3-moe");
  qwen.experts.before_choice = true;
  qwen.experts.every = 1;
  qwen.experts.balance = 0;
  dump(qwen, DType::f64, 3, folder / "qwen3-moe-not-normalized");
}

TEST_CASE("steps of training for torch_test.py", "[.][torch]") {
  const std::filesystem::path folder = test::needed("TEST_FOLDER");
  for (const ModelPreset& preset : model_presets())
    if (std::string(preset.name).starts_with("tiny") && preset.shape.experts.count == 0)
      dump(preset.shape, DType::f32, 10, folder / preset.name);
  dump_experts(folder);
}

}  // namespace
}  // namespace chorale
