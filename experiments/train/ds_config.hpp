// Translates a DeepSpeed configuration file into our settings, for `--ds-config FILE.json`. A key means what it means in
// DeepSpeed: if it is missing, DeepSpeed's default applies wherever that changes the results. A key without effect here is
// noted with the reason. Unsupported values and unknown keys are refused. "auto" leaves a key to our other sources. A file
// without an optimizer does so too, because DeepSpeed then uses the program's own.
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

// A row of the table of keys. To add a key, add its line to ds_keys.cpp, and to docs/other_programs.md the line that a test
// then asks for.
struct DsKey {
  const char* path;    // "optimizer.params.betas.0": object names and list indices, joined by dots
  const char* types;   // of the optimizers or schedulers that have it, "WarmupLR WarmupDecayLR"; "" for all
  const char* there;   // DeepSpeed's default, as JSON
  bool applies;        // if the key is missing, this default applies here too
  const char* option;  // of ours, or "" for none
  std::optional<std::string> (*convert)(
      const nlohmann::ordered_json&);  // returns our text; "" sets nothing; nullopt: not supported
  const char* takes;                   // the supported values, for messages; "": any value, without effect
  const char* remark;                  // for messages: why it has no effect, or how it differs
};
const std::vector<DsKey>& ds_keys();

std::string ds_table();  // in Markdown, one row per key

}  // namespace chorale::train
