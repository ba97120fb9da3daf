// A configuration file of DeepSpeed's as settings of ours, for `--ds-config FILE.json`. It means what it means there: a key
// that is left out has DeepSpeed's default, wherever that changes what is trained. A key that has no effect here is noted
// with the reason; one that asks for what is not here is refused, and so is one that nobody knows. "auto" leaves a key to
// our other sources, and so does a file without an optimizer: DeepSpeed has none by default, and takes the program's.
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

// A row of the table of keys. To know one more: its line in ds_keys.cpp, and the line of docs/other_programs.md that a test
// asks for.
struct DsKey {
  const char* path;    // "optimizer.params.betas.0": names of objects and places of lists, joined by dots
  const char* types;   // of the optimizers or schedulers that have it, "WarmupLR WarmupDecayLR"; "" for all
  const char* there;   // DeepSpeed's default, as JSON
  bool applies;        // and it is ours where the key is left out
  const char* option;  // of ours, or "" for none
  std::optional<std::string> (*convert)(
      const nlohmann::ordered_json&);  // to our text, "" to set nothing; nothing: not supported
  const char* takes;                   // what is supported, for people; "" for anything, which then has no effect
  const char* remark;                  // for people: why it has no effect, or how it differs
};
const std::vector<DsKey>& ds_keys();

std::string ds_table();  // in Markdown, a row a key

}  // namespace chorale::train
