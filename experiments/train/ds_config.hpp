// A configuration file of DeepSpeed's as settings of ours, for `--ds-config FILE.json`. What it says is translated; what it leaves out or calls
// "auto" stays as our other sources have it, also where DeepSpeed's own default is another. It is not read as if it said nothing: a key that
// asks for what is not here is refused, and so is one that nobody knows.
//
//   zero_optimization.stage = 2   →   zero = 2   (ds.json: zero_optimization.stage)
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/settings.hpp"

namespace chorale::train {

std::vector<Setting> read_ds_config(const std::filesystem::path& file);

// A row of the table of keys. To know one more: its line in ds_keys.cpp.
struct DsKey {
  const char* path;    // "optimizer.params.betas.0": names of objects and places of lists, joined by dots
  const char* option;  // of ours, or "" for none
  std::optional<std::string> (*convert)(
      const nlohmann::ordered_json&);  // to our text, "" to set nothing; nothing: not supported
  const char* takes;                   // what is supported, for people
};
const std::vector<DsKey>& ds_keys();

}  // namespace chorale::train
