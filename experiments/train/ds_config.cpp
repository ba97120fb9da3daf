#include "experiments/train/ds_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/common/each.hpp"
#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

using Json = nlohmann::ordered_json;

bool opens_a_key(const std::string& path) {
  return std::ranges::any_of(ds_keys(),
                             [&](const DsKey& key) { return std::string_view(key.path).starts_with(path + "."); });
}

bool is_auto(const Json& value) { return value.is_string() && value == "auto"; }
bool is_bf16(const Json& value) { return value == "bf16" || value == "bfloat16"; }
std::string shown_value(const Json& value) {
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), 80);
}

class Translation {
 public:
  Translation(std::string name, const Json& file) : name_(std::move(name)), file_(file) {}

  Foreign all() {
    require_one_type();
    optimizer_ = known_type("optimizer");
    scheduler_ = known_type("scheduler");
    apply_defaults(false);
    for (const auto& [key, value] : file_.items())
      if (key != "scheduler") translate(key, value);
    apply_defaults(true);
    if (file_.contains("scheduler")) translate("scheduler", file_["scheduler"]);  // these rates take precedence
    const auto is_off = [this](const char* type) { return is_absent(std::string(type) + ".enabled", true); };
    if (is_off("bf16") && is_off("bfloat16") && is_off("fp16")) apply_default("dtype", "f32", "bf16.enabled");
    complete_schedule();
    complete_batch();
    require_decoupled_decay();
    require_one_type_of_gradients();
    note_left_out();
    return std::move(result_);
  }

 private:
  void set(const std::string& option, const std::string& text, const std::string& path) {
    const auto same = std::ranges::find(result_.settings, option, &Setting::key);
    if (option == "offload-folder" && same != result_.settings.end() && same->text != text)
      return wrong(path, "a rank has one folder for offloaded tensors",
                   fmt::format("{} = {}, but {} = {}", same->origin, same->text, path, text),
                   fmt::format("give both keys the same path: {}", same->text));
    if (option == "place" && same != result_.settings.end())  // a list with values from two keys
      same->text += "," + text;
    else
      result_.settings.push_back({option, text, fmt::format("{}: {}", name_, path), Source::foreign});
  }

  void apply_default(const std::string& option, const std::string& text, const std::string& path) {
    result_.settings.push_back({option, text, fmt::format("{}: DeepSpeed's default of {}", name_, path)});
  }

  void note(const std::string& line) { result_.notes.push_back(fmt::format("{}: {}", name_, line)); }

  // All mistakes in the file are reported together. A key that two rules refuse is reported only once.
  void wrong(const std::string& path, const std::string& what, const std::string& numbers, const std::string& fix) {
    if (!refused_.insert(path).second) return;
    result_.mistakes.push_back({what, numbers, fix, fmt::format("{}: {}", numbers, fix)});
  }

  void refuse(const std::string& path, const Json& value, const std::string& takes) {
    wrong(path, fmt::format("DeepSpeed's {} is not supported with this value", path),
          fmt::format("{}: {} = {}", name_, path, shown_value(value)), fmt::format("remove it; supported: {}", takes));
  }

  void unknown(const std::string& path) {
    std::vector<std::string> paths = each(ds_keys(), [](const DsKey& key) { return std::string(key.path); });
    for (const DsKey& key : ds_keys()) paths.push_back(split(key.path, '.').front());
    wrong(path, fmt::format("unknown key \"{}\"", path),
          fmt::format("{}: {} is not a DeepSpeed key that chorale knows", name_, path),
          did_you_mean(path, paths, "remove it"));
  }

  // Returns the value at a path, or null if the file has none. If the value or an enclosing object is "auto", returns
  // "auto".
  Json at(const std::string& path) const {
    Json here = file_;
    for (const std::string& name : split(path, '.')) {
      const bool place =
          here.is_array() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (is_auto(here)) return here;
      if (place)
        here = std::stoul(name) < here.size() ? here[std::stoul(name)] : Json();
      else
        here = here.is_object() && here.contains(name) ? here[name] : Json();
    }
    return here;
  }

  bool is_absent(const std::string& path, bool or_false = false) const {
    const Json value = at(path);
    return value.is_null() || (or_false && value == false);
  }

  // Returns the optimizer's or scheduler's type in the file, or "". Refuses an unknown type before its parameters are read.
  std::string known_type(const std::string& section) {
    const std::string path = section + ".type";
    const Json type = at(path);
    if (type.is_null() || is_auto(type)) return "";
    if (key_of(path)->convert(type)) return type.get<std::string>();
    refuse(path, type, taken_by(*key_of(path)));
    return "";
  }

  static std::string taken_by(const DsKey& key) {
    return std::string(key.option[0] ? "" : "only ") + key.takes + (key.remark[0] ? fmt::format(" ({})", key.remark) : "");
  }

  // Whether the file's optimizer or scheduler type has this parameter. Returns true for all other keys.
  bool has(const DsKey& key) const {
    const std::string path = key.path;
    const bool of_optimizer = path.starts_with("optimizer.params.");
    const std::string type = of_optimizer ? lower(optimizer_) : lower(scheduler_);
    if (!of_optimizer && !path.starts_with("scheduler.params.")) return true;
    const std::vector<std::string> types = split(lower(key.types), ' ');
    return !type.empty() && (types.empty() || std::count(types.begin(), types.end(), type));
  }

  const DsKey* key_of(const std::string& path) const {
    const DsKey* found = nullptr;
    for (const DsKey& key : ds_keys())
      if (path == key.path && (!found || has(key))) found = &key;
    return found;
  }

  void apply_defaults(bool of_scheduler) {
    for (const DsKey& key : ds_keys()) {
      const std::string path = key.path;
      if (!key.applies || path.starts_with("scheduler.") != of_scheduler || !has(key) || !is_absent(path)) continue;
      const Json value = decays_by_torch(path) ? Json(0.01) : Json::parse(key.there);
      apply_default(key.option, *key.convert(value), path);
      if (!path.starts_with("fp16.") || at("fp16.enabled") == true)
        left_out_.push_back(fmt::format("{} {}", path, shown_value(value)));
    }
  }

  // Whether weight_decay has the default of torch.optim.AdamW (0.01), which differs from DeepSpeed's default.
  bool decays_by_torch(const std::string& path) const {
    return path == "optimizer.params.weight_decay" && at("optimizer.params.torch_adam") == true && decoupled();
  }
  bool decoupled() const { return lower(optimizer_) != "adam" || at("optimizer.params.adam_w_mode") != false; }

  void translate(const std::string& path, const Json& value) {
    if (is_auto(value)) return;
    if (const DsKey* key = key_of(path)) {
      take(*key, value);
    } else if (opens_a_key(path)) {
      if (!value.is_structured()) return refuse(path, value, "an object, or a list of two");
      for (const auto& [name, inner] : value.items()) translate(path + "." + name, inner);
    } else {
      unknown(path);
    }
  }

  void take(const DsKey& key, const Json& value) {
    const std::string path = key.path;
    if (!has(key)) {
      const bool of_optimizer = path.starts_with("optimizer");
      const std::string section = of_optimizer ? "optimizer" : "scheduler", type = of_optimizer ? optimizer_ : scheduler_;
      if (!type.empty()) refuse(path, value, fmt::format("only in {}s of the type {}", section, key.types));
      return note(fmt::format("{} = {} has no effect: there is no {}.type", path, shown_value(value), section));
    }
    const auto text = key.convert(value);
    if (!text) return refuse(path, value, taken_by(key));
    if (key.takes[0] == '\0') note(fmt::format("{} = {} has no effect: {}", path, shown_value(value), key.remark));
    if (key.option[0] && !text->empty()) set(key.option, *text, path);
  }

  void require_one_type() {
    if ((at("bf16.enabled") == true || at("bfloat16.enabled") == true) && at("fp16.enabled") == true)
      refuse("bf16.enabled", true, "one type: bf16 or fp16");
  }

  // Without a scheduler the rate is constant. A scheduler that lowers the rate must state its number of steps. The run then
  // has this number of steps, unless a source of higher precedence sets train-iters.
  void complete_schedule() {
    const Json total = at("scheduler.params.total_num_steps");
    if (is_absent("scheduler.type")) {
      apply_default("lr-decay-style", "constant", "scheduler.type");
      apply_default("lr-warmup-iters", "0", "scheduler.type");
      left_out_.emplace_back("scheduler: none, so a constant rate without warm-up");
    } else if (scheduler_ != "WarmupLR" && !scheduler_.empty()) {
      const std::string path = "scheduler.params.total_num_steps";
      const auto steps = key_of(path)->convert(total);
      if (total.is_null())
        refuse(path, total, fmt::format("a number: {} requires it", scheduler_));
      else if (!is_auto(total) && steps)
        set("train-iters", *steps, path);
    }
  }

  // A global batch size of 0 is computed from micro-batch, accumulation and replicas, once the number of replicas is known.
  void complete_batch() {
    if (!is_absent("train_batch_size")) return;
    if (is_absent("train_micro_batch_size_per_gpu"))
      return note(
          "neither train_batch_size nor train_micro_batch_size_per_gpu is given, though DeepSpeed requires one: chorale's "
          "batch options apply");
    if (is_auto(at("train_micro_batch_size_per_gpu"))) return;
    set("global-batch-size", "0", "train_micro_batch_size_per_gpu");
    if (is_absent("gradient_accumulation_steps")) set("gradient-accumulation-steps", "1", "train_micro_batch_size_per_gpu");
  }

  // ZeRO-2 and ZeRO-3 store gradient shards in the type in which ranks sum gradients.
  void require_one_type_of_gradients() {
    const Json travels = at("communication_data_type"), adds = at("data_types.grad_accum_dtype");
    const Json stage = at("zero_optimization.stage");
    const bool widens = stage.is_number() && stage >= 2 && is_bf16(travels) && adds == "fp32";
    if (widens || (travels == "fp32" && is_bf16(adds)))
      refuse("data_types.grad_accum_dtype", adds,
             fmt::format("{0} with communication_data_type {0}", widens ? "bf16" : "fp32"));
  }

  // Chorale does not implement Adam with L2 regularization, which adds the decay to the gradient. Without decay, Adam and
  // AdamW are equal.
  void require_decoupled_decay() {
    const Json decay = at("optimizer.params.weight_decay");
    if (!decoupled() && !decay.is_null() && decay != 0)
      refuse("optimizer.params.adam_w_mode", false,
             "true, or a weight_decay of 0: chorale never adds the decay to the gradient");
  }

  void note_left_out() {
    if (is_absent("optimizer.type"))
      note("no optimizer is given; DeepSpeed then uses the program's: chorale's optimizer options apply");
    if (is_absent("gradient_clipping"))
      note(
          "gradient_clipping is missing: gradients are not clipped, as in DeepSpeed up to 0.19.2; later releases clip at 1, "
          "so set the key");
    if (!left_out_.empty()) note(fmt::format("DeepSpeed's defaults for missing keys: {}", join(left_out_, ", ")));
  }

  std::string name_, optimizer_, scheduler_;
  const Json& file_;
  Foreign result_;
  std::vector<std::string> left_out_;
  std::set<std::string> refused_;  // paths
};

}  // namespace

Foreign read_ds_config(const std::filesystem::path& file) {
  const std::string text = config_text(file, "--ds-config");
  try {
    const Json json = Json::parse(text);
    if (!json.is_object())
      usage_error("the file is not a DeepSpeed configuration", fmt::format("{} is not a JSON object", file.string()),
                  "give one object: {\"train_batch_size\": 32, …}");
    return Translation(file.string(), json).all();
  } catch (const nlohmann::json::parse_error& error) {
    usage_error("the config file is not valid JSON",
                fmt::format("{}:{}: {}", file.string(), line_at(text, std::min(error.byte, text.size())), reason_of(error)),
                "a DeepSpeed configuration is one object: {\"key\": value, …}");
  } catch (const nlohmann::json::out_of_range& error) {  // a number above 10^308; the parser does not give its position
    usage_error("the config file has a number that is too large", fmt::format("{}: {}", file.string(), reason_of(error)),
                "a DeepSpeed configuration is one object: {\"key\": value, …}");
  }
}

std::string ds_table() {
  std::string table = "| key | type | DeepSpeed's default | here |\n|---|---|---|---|\n";
  for (const DsKey& key : ds_keys()) {
    const std::string what = key.option[0]  ? fmt::format("`--{}`", key.option)
                             : key.takes[0] ? fmt::format("refused unless {}", key.takes)
                                            : "no effect";
    table += fmt::format("| `{}` | {} | {} | {}{} |\n", key.path, key.types,
                         std::string_view(key.there) == "null" ? "none" : key.there, what,
                         key.remark[0] ? fmt::format(": {}", key.remark) : "");
  }
  return table;
}

}  // namespace chorale::train
