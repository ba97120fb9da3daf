// Translates a DeepSpeed configuration file into Chorale's settings, for `--ds-config FILE.json`. Keys have the same meaning
// as in DeepSpeed. If a key that changes the results is missing, DeepSpeed's default is used. If a key has no effect in
// chorale, a note says why. Unsupported values and unknown keys are usage errors.
//
// A key whose value is "auto" sets nothing. The option's value then comes from the command line, a config file or chorale's
// default. If the file does not define an optimizer, the same rule applies to the optimizer, because DeepSpeed then uses the
// optimizer of the training script.
//
//   zero_optimization.stage = 2     →   zero = 2                (ds.json: zero_optimization.stage)
//   no scheduler                    →   lr-decay-style = constant (ds.json: DeepSpeed's default of scheduler.type)
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/settings.hpp"

namespace chorale::train {

Foreign read_ds_config(const std::filesystem::path& file);

// A row of the table of keys. To add a key, add its line to ds_keys.cpp. A test then fails, and prints the line that you
// must add to docs/other_programs.md.
struct DsKey {
  const char* path;    // "optimizer.params.betas.0": object names and list indices, joined by dots
  const char* types;   // the optimizer or scheduler types that have the key, "WarmupLR WarmupDecayLR"; "" means all types
  const char* there;   // the default in DeepSpeed, as JSON
  bool applies;        // whether chorale uses DeepSpeed's default if the key is missing
  const char* option;  // chorale's option that the key sets, or ""
  std::optional<std::string> (*convert)(
      const nlohmann::ordered_json&);  // the option's value; "" to set nothing; nullopt if it is unsupported
  const char* takes;                   // the supported values, for messages; "" if the key has no effect
  const char* remark;                  // for messages: why the key has no effect, or how it differs from DeepSpeed's
};
const std::vector<DsKey>& ds_keys();

std::string ds_table();  // in Markdown, one row per key

}  // namespace chorale::train
