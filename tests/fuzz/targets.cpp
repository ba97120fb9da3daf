// The table of fuzz targets. To add a target, write a function in a file of this folder, and add its row to this table.
#include <algorithm>

#include "src/base/error.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"

namespace chorale::test {

void fuzz_toml(std::string_view input);
void fuzz_json(std::string_view input);
void fuzz_deepspeed(std::string_view input);
void fuzz_command_line(std::string_view input);
void fuzz_suite(std::string_view input);
void fuzz_machine(std::string_view input);
void fuzz_tuning(std::string_view input);
void fuzz_assumptions(std::string_view input);
void fuzz_model_config(std::string_view input);
void fuzz_token_file(std::string_view input);
void fuzz_megatron(std::string_view input);
void fuzz_tokenizer(std::string_view input);
void fuzz_vocabulary(std::string_view input);
void fuzz_safetensors(std::string_view input);
void fuzz_manifest(std::string_view input);
void fuzz_checkpoint(std::string_view input);
void fuzz_model(std::string_view input);
void fuzz_record(std::string_view input);
void fuzz_metrics(std::string_view input);
void fuzz_flight(std::string_view input);
std::vector<std::string> token_file_samples();
std::vector<std::string> megatron_samples();
std::vector<std::string> tokenizer_samples();
std::vector<std::string> vocabulary_samples();
std::vector<std::string> safetensors_samples();
std::vector<std::string> manifest_samples();
std::vector<std::string> checkpoint_samples();
std::vector<std::string> model_samples();
std::vector<std::string> record_samples();

const std::vector<Target>& targets() {
  static const std::vector<Target> table{
      {"toml", "R13", fuzz_toml},
      {"json", "R13", fuzz_json},
      {"deepspeed", "R13", fuzz_deepspeed},
      {"command_line", "R13", fuzz_command_line},
      {"suite", "R13", fuzz_suite},
      {"machine", "R13", fuzz_machine},
      {"tuning", "R13", fuzz_tuning},
      {"assumptions", "R13", fuzz_assumptions},
      {"model_config", "R13", fuzz_model_config},
      {"token_file", "R14", fuzz_token_file, token_file_samples},
      {"megatron", "R14", fuzz_megatron, megatron_samples},
      {"tokenizer", "R14", fuzz_tokenizer, tokenizer_samples},
      {"vocabulary", "R14", fuzz_vocabulary, vocabulary_samples},
      {"safetensors", "R14", fuzz_safetensors, safetensors_samples},
      {"manifest", "R14", fuzz_manifest, manifest_samples},
      {"checkpoint", "R14", fuzz_checkpoint, checkpoint_samples},
      {"model", "R14", fuzz_model, model_samples},
      {"record", "R14", fuzz_record, record_samples},
      {"metrics", "R14", fuzz_metrics},
      {"flight", "R14", fuzz_flight},
  };
  return table;
}

const Target& target_named(const std::string& name) {
  const auto found = std::ranges::find(targets(), name, &Target::name);
  require(found != targets().end(), "there is no target called \"{}\": tests/fuzz/targets.cpp lists them", name);
  return *found;
}

std::vector<std::string> good_inputs(const Target& target, const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/fuzz/corpus" / target.name, none))
    files.push_back(entry.path());
  std::ranges::sort(files);  // sorted, so that a trial number always means the same mutation
  std::vector<std::string> inputs;
  for (const auto& file : files) inputs.push_back(bytes_in(file));
  if (target.samples)
    for (std::string& sample : target.samples()) inputs.push_back(std::move(sample));
  require(!inputs.empty(), "the target {} has no good input: run the tests in the root of the repository", target.name);
  return inputs;
}

}  // namespace chorale::test
