#include "experiments/train/ds_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

using Json = nlohmann::ordered_json;

const DsKey* key_of(const std::string& path) {
  for (const DsKey& key : ds_keys())
    if (path == key.path) return &key;
  return nullptr;
}

bool opens_a_key(const std::string& path) {
  return std::any_of(ds_keys().begin(), ds_keys().end(),
                     [&](const DsKey& key) { return std::string_view(key.path).starts_with(path + "."); });
}

bool is_auto(const Json& value) { return value.is_string() && value == "auto"; }

// A number that is said, else nothing.
std::optional<double> number_at(const Json& file, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (!file.contains(place) || !file.at(place).is_number()) return {};
  return file.at(place).get<double>();
}

class Translation {
 public:
  explicit Translation(std::string name) : name_(std::move(name)) {}

  void all_of(const Json& file) {
    for (const auto& [key, value] : file.items())
      if (key != "scheduler") translate(key, value);
    if (file.contains("scheduler")) translate("scheduler", file["scheduler"]);  // its rates win over the optimizer's
    both_types(file);
    batch(file);
    lowest_rate(file);
    reduction(file);
  }

  std::vector<Setting> settings;

 private:
  void set(const std::string& option, const std::string& text, const std::string& path) {
    settings.push_back({option, text, fmt::format("{}: {}", name_, path)});
  }

  [[noreturn]] void refuse(const std::string& path, const Json& value, const std::string& takes) const {
    usage_error(fmt::format("DeepSpeed's {} is not supported like this", path),
                fmt::format("{}: {} = {}", name_, path, value.dump(-1, ' ', false, Json::error_handler_t::replace)),
                fmt::format("remove it; supported is {}", takes));
  }

  [[noreturn]] void unknown(const std::string& path) const {
    std::vector<std::string> paths;
    for (const DsKey& key : ds_keys()) paths.emplace_back(key.path);
    for (const DsKey& key : ds_keys()) paths.push_back(split(key.path, '.').front());
    usage_error(fmt::format("unknown key \"{}\"", path), fmt::format("{}: DeepSpeed has no such key that we know", name_),
                did_you_mean(path, paths, "remove it"));
  }

  void translate(const std::string& path, const Json& value) {
    if (is_auto(value)) return;
    if (const DsKey* key = key_of(path)) {
      const auto text = key->convert(value);
      if (!text) refuse(path, value, key->takes);
      if (key->option[0] && !text->empty()) set(key->option, *text, path);
    } else if (opens_a_key(path)) {
      if (!value.is_structured()) refuse(path, value, "an object, or a list of two");
      for (const auto& [name, inner] : value.items()) translate(path + "." + name, inner);
    } else {
      unknown(path);
    }
  }

  void both_types(const Json& file) const {
    const auto enabled = [&](const char* type) {
      const Json::json_pointer place(type);
      return file.contains(place) && file.at(place) == true;
    };
    if (enabled("/bf16/enabled") && enabled("/fp16/enabled")) refuse("bf16.enabled", true, "one type: bf16 or fp16");
  }

  // Without a train_batch_size it follows from the others, once the replicas are known: 0 says so. Accumulation is 1 where it is not said.
  void batch(const Json& file) {
    if (number_at(file, "/train_batch_size") || !number_at(file, "/train_micro_batch_size_per_gpu")) return;
    set("global-batch-size", "0", "train_micro_batch_size_per_gpu");
    if (!number_at(file, "/gradient_accumulation_steps"))
      set("gradient-accumulation-steps", "1", "train_micro_batch_size_per_gpu");
  }

  void lowest_rate(const Json& file) {
    const Json::json_pointer type("/scheduler/type");
    if (file.contains(type) && file.at(type) == "WarmupDecayLR") set("min-lr", "0", "scheduler.type");
    const auto ratio = number_at(file, "/scheduler/params/cos_min_ratio"), rate = number_at(file, "/optimizer/params/lr");
    if (!ratio) return;
    if (!rate) refuse("scheduler.params.cos_min_ratio", *ratio, "a share of optimizer.params.lr, which is not said");
    set("min-lr", fmt::format("{}", *ratio * *rate), "scheduler.params.cos_min_ratio");
  }

  // Hints of how gradients travel: our ZeRO 1 to 3 reduce as they must, and 2 and 3 a block at once.
  void reduction(const Json& file) {
    const double stage = number_at(file, "/zero_optimization/stage").value_or(0);
    std::erase_if(settings, [&](const Setting& s) {
      return (stage >= 1 && s.key == "reducer") || (stage >= 2 && s.key == "bucket-size");
    });
  }

  std::string name_;
};

}  // namespace

std::vector<Setting> read_ds_config(const std::filesystem::path& file) {
  const std::string text = config_text(file, "--ds-config");
  Translation translation(file.string());
  try {
    const Json json = Json::parse(text);
    if (!json.is_object())
      usage_error("the file is no configuration of DeepSpeed's", fmt::format("{}: it is not one object", file.string()),
                  "it reads {\"train_batch_size\": 32, …}");
    translation.all_of(json);
  } catch (const nlohmann::json::parse_error& error) {
    usage_error("the config file is not valid JSON",
                fmt::format("{}:{}: {}", file.string(), line_at(text, std::min(error.byte, text.size())), error.what()),
                "a file of DeepSpeed's is one object: {\"key\": value, …}");
  }
  return translation.settings;
}

}  // namespace chorale::train
