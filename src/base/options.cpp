#include "src/base/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

template <class Number, class Parse>
bool parse_whole(const std::string& text, Number& value, Parse parse) {
  char* end = nullptr;
  errno = 0;
  const Number parsed = parse(text.c_str(), &end);
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) || *end != '\0' || errno == ERANGE) return false;
  value = parsed;
  return true;
}

// Returns "" if the number lies within the option's limits, else what was expected.
std::string outside(const Option& option, double value) {
  if (option.lowest > option.highest || (value >= option.lowest && value <= option.highest)) return "";
  return std::isinf(option.highest) ? fmt::format("{} or more", option.lowest)
                                    : fmt::format("{} to {}", option.lowest, option.highest);
}

// Parses a size into the field and the option's text. Returns "", or what was expected if the size is invalid.
std::string assign_bytes(const std::string& text, std::int64_t& field, Option& option) {
  const auto value = parse_bytes(text);
  if (!value) return "a size such as 8, 64K or 1M";
  if (std::string expected = outside(option, static_cast<double>(*value)); !expected.empty()) return expected;
  field = *value;
  return option.text = fmt::format("{}", field), "";
}

}  // namespace

std::string quoted_toml(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::pair<std::string, std::string> described(const Option& option) {
  std::string head = option.positional ? option.metavar : "--" + option.name;
  if (!option.positional && !option.is_switch)
    head += " " + (option.choices.empty() ? option.metavar : join(option.choices, "|"));
  std::string tail = option.about;
  if (!option.text.empty() && !option.is_switch && option.origin == "default") tail += " (default " + option.text + ")";
  for (const Condition& condition : option.conditions) tail += ", only with " + condition.needs;
  for (const std::string& alias : option.aliases) tail += ", also " + dashes(alias) + alias;
  return {head, tail};
}

Option& Option::only_with(const std::string& other, const std::vector<std::string>& values) {
  const auto why_not = [other, values](const Options& options) -> std::string {
    const Option* const decides = options.find(other);
    if (!decides || std::count(values.begin(), values.end(), decides->text)) return "";
    return fmt::format("{} = {} ({})", other, decides->text, decides->origin);
  };
  return conditions.push_back({why_not, fmt::format("{} {}", other, either(values))}), *this;
}

Option& Option::only_where(const std::string& needs, std::function<std::string()> why_not) {
  return conditions.push_back({[why_not = std::move(why_not)](const Options&) { return why_not(); }, needs}), *this;
}

std::string canonical_key(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  return replace_all(lower(std::move(name)), '_', '-');
}

Option& Options::insert(Option option) {
  require(!find(option.name), "option {} of {} is declared twice", option.name, command_);
  option.section = section_;
  option.initial = option.text;
  return options_.emplace_back(std::move(option));
}

Option& Options::add(const std::string& name, std::string& field, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .metavar = "TEXT", .text = field});
  option.assign = [&field, &option](const std::string& text) { return field = option.text = text, ""; };
  return option;
}

Option& Options::add(const std::string& name, bool& field, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .text = field ? "true" : "false", .is_switch = true});
  option.assign = [&field, &option](const std::string& text) -> std::string {
    const auto value = parse_switch(text);
    if (!value) return "true or false";
    field = *value;
    return option.text = field ? "true" : "false", "";
  };
  return option;
}

Option& Options::add(const std::string& name, std::int64_t& field, const std::string& about) {
  Option& option =
      insert({.name = name, .about = about, .metavar = "N", .text = fmt::format("{}", field), .is_number = true});
  option.assign = [&field, &option](const std::string& text) -> std::string {
    std::int64_t value = 0;
    if (!parse_whole(text, value, [](const char* s, char** end) { return std::strtoll(s, end, 10); }))
      return "a whole number";
    if (const auto expected = outside(option, static_cast<double>(value)); !expected.empty()) return expected;
    field = value;
    return option.text = fmt::format("{}", field), "";
  };
  return option;
}

Option& Options::add_bytes(const std::string& name, std::int64_t& field, const std::string& about) {
  Option& option = add(name, field, about);
  option.metavar = "BYTES";
  option.assign = [&field, &option](const std::string& text) { return assign_bytes(text, field, option); };
  return option;
}

Option& Options::add_bytes(const std::string& name, std::optional<std::int64_t>& field, const std::string& about) {
  Option& option =
      insert({.name = name, .about = about, .metavar = "BYTES|auto", .text = field ? fmt::format("{}", *field) : "auto"});
  option.assign = [&field, &option](const std::string& text) -> std::string {
    if (text == "auto") return field.reset(), option.text = text, "";
    std::string expected = assign_bytes(text, field.emplace(), option);
    return expected.empty() ? expected : expected + ", or auto";
  };
  return option;
}

Option& Options::add_seconds(const std::string& name, double& field, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .metavar = "TIME", .text = fmt::format("{}s", field)});
  option.assign = [&field, &option](const std::string& text) -> std::string {
    const auto seconds = parse_seconds(text);
    if (!seconds) return "a time such as 90s, 1.5m or 2h";
    field = *seconds;
    return option.text = fmt::format("{}s", field), "";
  };
  return option;
}

Option& Options::add(const std::string& name, double& field, const std::string& about) {
  Option& option =
      insert({.name = name, .about = about, .metavar = "X", .text = fmt::format("{}", field), .is_number = true});
  option.assign = [&field, &option](const std::string& text) -> std::string {
    double value = 0;
    if (!parse_whole(text, value, [](const char* s, char** end) { return std::strtod(s, end); }) || !std::isfinite(value))
      return "a number";
    if (const auto expected = outside(option, value); !expected.empty()) return expected;
    field = value;
    return option.text = fmt::format("{}", field), "";
  };
  return option;
}

Option& Options::add_relative(const std::string& name, const std::string& whole, Relative& field, const std::string& about) {
  const auto text_of = [suffix = "*" + whole](const Relative& share) {
    return fmt::format("{}{}", share.value, share.relative ? suffix : "");
  };
  Option& option = insert({.name = name, .about = about, .metavar = "X", .text = text_of(field)});
  option.assign = [&field, &option, text_of, suffix = "*" + whole](const std::string& text) -> std::string {
    Relative share{.relative = text.ends_with(suffix)};
    const std::string number = share.relative ? text.substr(0, text.size() - suffix.size()) : text;
    if (!parse_whole(number, share.value, [](const char* s, char** end) { return std::strtod(s, end); }) ||
        !std::isfinite(share.value))
      return fmt::format("a number, or a share such as 0.1{}", suffix);
    if (const auto expected = outside(option, share.value); !expected.empty()) return expected;
    field = share;
    return option.text = text_of(field), "";
  };
  return option;
}

Option& Options::add(const std::string& name, std::vector<std::string>& field, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .metavar = "A,B,…", .text = join(field, ","), .is_list = true});
  option.assign = [&field, &option](const std::string& text) { return field = split(option.text = text, ','), ""; };
  return option;
}

Option& Options::add(const std::string& name, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .metavar = "TEXT", .is_source = true});
  option.assign = [&option](const std::string& text) { return option.text = text, ""; };
  return option;
}

Option& Options::add_positional(const std::string& name, std::vector<std::string>& field, const std::string& about) {
  Option& option = insert({.name = name, .about = about, .metavar = "FILE…", .positional = true, .is_list = true});
  option.assign = [&field, &option](const std::string& text) {
    return field = split(option.text = text, '\n'), "";
  };  // file names may contain commas
  return option;
}

void Options::pass_on(const Options& other, const std::vector<std::string>& except) {
  for (const Option& theirs : other.options_) {
    if (theirs.positional || find(theirs.name) || std::count(except.begin(), except.end(), theirs.name)) continue;
    Option& option = insert(theirs);
    option.passed_on = true;
    if (!option.choices.empty()) option.suggestions = std::exchange(option.choices, {});
    option.conditions.clear(), option.synonyms.clear(), option.replaced.clear();
    option.assign = [&option](const std::string& text) { return option.text = text, ""; };
  }
}

std::vector<Setting> Options::given_to_pass_on() const {
  std::vector<Setting> given;
  for (const Option& option : options_)
    if (option.passed_on && option.source != Source::other)
      given.push_back({option.name, option.text, option.origin, option.source});
  return given;
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> all;
  for (const Option& option : options_) {
    all.push_back(option.name);
    all.insert(all.end(), option.aliases.begin(), option.aliases.end());
  }
  for (const Word& word : foreign_words_) all.push_back(word.name);
  return all;
}

const Option* Options::find(const std::string& key) const {
  for (const Option& option : options_)
    if (option.name == key || std::count(option.aliases.begin(), option.aliases.end(), key)) return &option;
  return nullptr;
}

const std::string& Options::origin(const std::string& name) const {
  const Option* option = find(name);
  require(option, "{} has no option called {}", command_, name);
  return option->origin;
}

void Options::set(const Setting& setting) {
  auto* option = const_cast<Option*>(find(setting.key));
  if (!option) {
    const std::string near = nearest(setting.key, names());
    usage_error(fmt::format("unknown option \"{}\"", setting.key),
                fmt::format("{} has no such option ({})", command_, setting.origin),
                (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) + command_ + " --help lists them all");
  }
  std::string expected, text = setting.text;
  for (const auto& [theirs, ours] : option->synonyms)
    if (text == theirs) text = ours;
  if (!option->choices.empty())
    for (const std::string& part : option->is_list ? split(text, ',') : std::vector<std::string>{text})
      if (!std::count(option->choices.begin(), option->choices.end(), part)) expected = join(option->choices, ", ");
  if (expected.empty()) expected = option->assign(text);
  if (!expected.empty())
    usage_error(fmt::format("\"{}\" is not a value of {}", setting.text, option->name),
                fmt::format("{} = {} ({})", setting.key, setting.text, setting.origin),
                fmt::format("{} takes {}{}", option->name, option->choices.empty() ? "" : "one of ", expected));
  option->origin = setting.origin;
  option->source = setting.source;
  if (setting.origin == "default") option->initial = option->text;
}

std::string Options::why_idle(const Option& option) const {
  for (const Condition& condition : option.conditions)
    if (std::string why = condition.why_not(*this); !why.empty()) return why;
  return "";
}

void Options::settle() {
  require_expected();
  for (Option& option : options_) {
    if (option.source == Source::other) continue;
    const std::string why = why_idle(option);
    if (why.empty()) continue;
    const std::string found = fmt::format("{} = {} ({})", option.name, option.text, option.origin);
    if (option.source == Source::foreign) {
      note(fmt::format("{} has no effect: {}", found, why));
      option.assign(option.initial);
      option.origin = "default", option.source = Source::other;
    } else if (option.source != Source::config || option.text != option.initial) {
      std::vector<std::string> needs;
      for (const Condition& condition : option.conditions) needs.push_back(condition.needs);
      usage_error(fmt::format("{} has no effect here", option.name), fmt::format("{}; {}", found, why),
                  fmt::format("leave it out: it works only with {}", join(needs, " and ")));
    }
  }
}

std::vector<std::string> Options::words(const std::vector<std::string>& without) const {
  std::vector<std::string> first, words;
  for (const Option& option : options_) {
    const bool comes_along = option.origin.starts_with("preset ") || option.origin.starts_with("model ");
    const bool is_told = option.origin != "default" && !comes_along && !option.is_source && why_idle(option).empty();
    if (!is_told || std::count(without.begin(), without.end(), option.name)) continue;
    if (option.positional)
      first = split(option.text, '\n');
    else
      words.push_back(fmt::format("--{}={}", option.name, option.text));
  }
  words.insert(words.begin(), first.begin(), first.end());
  return words;
}

std::string Options::help_text() const {
  std::string out, section;
  for (const Option& option : options_) {
    if (option.passed_on) continue;
    if (option.section != section) out += fmt::format("{}{}\n", out.empty() ? "" : "\n", section = option.section);
    const auto [head, tail] = described(option);
    out += head.size() <= 26 ? fmt::format("  {:<26}  {}\n", head, tail) : fmt::format("  {}\n{:30}{}\n", head, "", tail);
  }
  return out;
}

std::string Options::toml() const {
  std::string out;
  for (const Option& option : options_) {
    if (option.positional || option.is_source || (option.passed_on && option.origin == "default")) continue;
    const bool bare = (option.is_number || option.is_switch) && !option.passed_on;
    out += fmt::format("{}{} = {}\n", why_idle(option).empty() ? "" : idle_mark, option.name,
                       bare ? option.text : quoted_toml(option.text));
  }
  return out;
}

std::string Options::origins() const {
  std::string out;
  for (const Option& option : options_)
    if (!option.passed_on || option.origin != "default") out += fmt::format("{} = {}\n", option.name, option.origin);
  return out;
}

}  // namespace chorale
