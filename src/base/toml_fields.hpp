// Reads the tables of a TOML file with known keys. Errors name the file, the line and the key.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/base/toml.hpp"

namespace chorale {

struct FieldsFile {
  std::string name;         // the name that the user gave
  std::string kind;         // "machine file"
  std::string how_to_mend;  // the third line of each error, which suggests a fix
};

inline toml::table toml_in(const std::string& text, const FieldsFile& file) try {
  return toml::parse(text, file.name);
} catch (const toml::parse_error& error) {
  usage_error(fmt::format("the {} is not valid TOML", file.kind),
              fmt::format("{}:{}: {}", file.name, error.source().begin.line, std::string(error.description())),
              file.how_to_mend);
}

// One table of a file. The parsed table must outlive this object. finish() refuses keys that have not been read.
class TomlFields {
 public:
  TomlFields(const toml::table& table, std::string section, const FieldsFile& file)
      : table_(table), section_(std::move(section)), file_(file) {}

  bool has(const char* key) { return table_.contains(key); }

  std::string text(const char* key) {
    const toml::node& node = find(key);
    if (!node.is_string()) refuse(key, node, "is not a text in quotes");
    return node.ref<std::string>();
  }
  std::string text(const char* key, const char* missing) { return has(key) ? text(key) : missing; }

  bool flag(const char* key) {
    if (!has(key)) return false;
    const toml::node& node = find(key);
    if (!node.is_boolean()) refuse(key, node, "is neither true nor false");
    return node.ref<bool>();
  }

  double number(const char* key, double least, double most) { return value(key, find(key), least, most); }
  double number(const char* key, double least, double most, double missing) {
    return has(key) ? number(key, least, most) : missing;
  }

  std::int64_t integer(const char* key, double least, double most) {
    const double value = number(key, least, most);
    if (value != static_cast<double>(static_cast<std::int64_t>(value))) refuse(key, find(key), "is not a whole number");
    return static_cast<std::int64_t>(value);
  }
  std::int64_t integer(const char* key, double least, double most, std::int64_t missing) {
    return has(key) ? integer(key, least, most) : missing;
  }
  // Reads a string that must be one of `texts`. Returns texts.front() if the key is missing.
  std::string choice(const char* key, const std::vector<std::string>& texts) {
    const std::string text = has(key) ? this->text(key) : texts.front();
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      refuse(key, find(key), fmt::format("is \"{}\", but must be one of: {}", text, join(texts, ", ")));
    return text;
  }

  std::vector<double> numbers(const char* key, std::size_t count, double least, double most) {
    const toml::node& node = find(key);
    if (count == 1) return {value(key, node, least, most)};
    const toml::array* list = node.as_array();
    if (!list || list->size() != count) refuse(key, node, fmt::format("is not a list of {} numbers", count));
    std::vector<double> values;
    for (const toml::node& part : *list) values.push_back(value(key, part, least, most));
    return values;
  }

  std::vector<TomlFields> tables(const char* key) {
    std::vector<TomlFields> all;
    if (!has(key)) return all;
    const toml::node& node = find(key);
    if (!node.is_array_of_tables()) refuse(key, node, fmt::format("is not a list of tables, each headed [[{}]]", key));
    for (const toml::node& part : *node.as_array())
      all.emplace_back(*part.as_table(), fmt::format("[[{}{}]] ", section_, key), file_);
    return all;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& [key, node] : table_) all.emplace_back(std::string_view(key));
    return all;
  }
  std::optional<TomlFields> table(const char* key) {
    if (!has(key)) return std::nullopt;
    const toml::node& node = find(key);
    if (!node.is_table()) refuse(key, node, "is not a table");
    return TomlFields(*node.as_table(), section_ + key + ".", file_);
  }

  // Refuses keys that have not been read. For a misspelled key, suggests a key that was read or a key in also_known.
  void finish(const std::vector<std::string>& also_known = {}) {
    for (const auto& [key, node] : table_)
      if (const std::string name{std::string_view(key)}; !read_.contains(name)) {
        std::vector<std::string> known(read_.begin(), read_.end());
        known.insert(known.end(), also_known.begin(), also_known.end());
        refuse(name, node, "is no key of a " + file_.kind, did_you_mean(name, known, ""));
      }
  }

  [[noreturn]] void refuse(const std::string& key, const toml::node& node, const std::string& why,
                           const std::string& hint = "") const {
    usage_error(fmt::format("the {} is wrong", file_.kind),
                fmt::format("{}:{}: {}{} {}", file_.name, node.source().begin.line, section_, key, why),
                hint.empty() ? file_.how_to_mend : hint);
  }
  const toml::node& find(const char* key) {
    read_.insert(key);
    const toml::node* node = table_.get(key);
    if (!node) refuse(key, table_, "is missing from the table that begins here");
    return *node;
  }

 private:
  double value(const char* key, const toml::node& node, double least, double most) const {
    const auto number = node.value<double>();
    if (!number || node.is_string() || node.is_boolean()) refuse(key, node, "is not a number");
    if (!(*number >= least && *number <= most))
      refuse(key, node, fmt::format("is {:g}, but must be from {:g} to {:g}", *number, least, most));
    return *number;
  }

  const toml::table& table_;
  std::string section_;
  const FieldsFile& file_;
  std::set<std::string> read_;
};

}  // namespace chorale
