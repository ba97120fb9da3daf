// Config files: flat `key = value` lines in TOML, or one flat object in JSON. Values are converted to the text that a user
// would type; lists are joined by commas. Every setting records its file and line.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/host.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"
#include "src/base/toml.hpp"
#include "src/base/toml_fields.hpp"

namespace chorale {

std::size_t line_at(const std::string& text, std::size_t position) {
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

namespace {

[[noreturn]] void refuse_config(const std::string& origin, const std::string& key, const std::string& kind) {
  usage_error(fmt::format("\"{}\" cannot be {}", key, kind), fmt::format("found at {}", origin),
              "config files are flat: key = text, number, true, false, or a list of these");
}

}  // namespace

void refuse_toml() { throw toml::parse_error("a name or a bracket is not complete", toml::source_region{}); }

std::string setting_text(const toml::node& node, const std::string& key, const std::string& origin) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  if (const toml::array* list = node.as_array()) {
    std::vector<std::string> parts;
    for (const toml::node& part : *list) {
      if (part.is_array()) refuse_config(origin, key, "a list of lists");
      parts.push_back(setting_text(part, key, origin));
    }
    return join(parts, ",");
  }
  refuse_config(origin, key, node.is_table() ? "a table" : "a date or time");
}

std::vector<Setting> read_toml(const std::string& text, const std::string& name) {
  std::vector<Setting> settings;
  for (const auto& [key, node] : toml_in(text, {name, "config file", "a line reads key = value, with text in quotes"})) {
    const std::string origin = fmt::format("{}:{}", name, node.source().begin.line);
    const std::string key_text(std::string_view{key});
    settings.push_back({canonical_key(key_text), setting_text(node, key_text, origin), origin});
  }
  return settings;
}

namespace {

std::string text_of_node(const nlohmann::ordered_json& value, const std::string& key, const std::string& origin) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) refuse_config(origin, key, "an object");
  if (value.is_null()) refuse_config(origin, key, "null");
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& part : value) {
    if (part.is_array()) refuse_config(origin, key, "a list of lists");
    parts.push_back(text_of_node(part, key, origin));
  }
  return join(parts, ",");
}

std::vector<Setting> read_json(const std::string& text, const std::string& name) {
  std::vector<Setting> settings;
  try {
    const auto object = nlohmann::ordered_json::parse(text);
    if (!object.is_object()) refuse_config(name + ":1", "the whole file", "anything but one object");
    for (const auto& [key, value] : object.items()) {
      // The parser does not record positions. In a flat object, the first occurrence of `"key"` is the key itself, unless an
      // earlier value has the same text.
      const std::size_t at = std::min(text.find(nlohmann::json(key).dump()), text.size());
      const std::string origin = fmt::format("{}:{}", name, line_at(text, at));
      settings.push_back({canonical_key(key), text_of_node(value, key, origin), origin});
    }
  } catch (const nlohmann::json::parse_error& error) {
    usage_error("the config file is not valid JSON",
                fmt::format("{}:{}: {}", name, line_at(text, std::min(error.byte, text.size())), reason_of(error)),
                "a config file is one flat object: {\"key\": value, …}");
  } catch (const nlohmann::json::out_of_range& error) {  // a number over 10^308; the parser does not report its position
    usage_error("the config file has a number that is too large", fmt::format("{}: {}", name, reason_of(error)),
                "a config file is one flat object: {\"key\": value, …}");
  }
  return settings;
}

}  // namespace

std::string config_text(const std::filesystem::path& file, const std::string& asker) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  auto text = std::filesystem::is_regular_file(status) ? contents_of(file) : std::nullopt;
  if (!text)
    usage_error("the file cannot be read",
                fmt::format("{}: {}", file.string(),
                            std::filesystem::is_directory(status) ? "it is a folder"
                            : std::filesystem::exists(status)     ? "permission denied, or not a regular file"
                                                                  : "no such file"),
                fmt::format("check the path given to {}", asker));
  return *std::move(text);
}

std::vector<Setting> read_config(const std::filesystem::path& file) {
  const std::string text = config_text(file, "--config");
  return file.extension() == ".json" ? read_json(text, file.string()) : read_toml(text, file.string());
}

}  // namespace chorale
