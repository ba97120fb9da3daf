// The types of options. Each `add` function binds an option to a field, and defines how a string is converted to the field's
// value.
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/options.hpp"
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

// Returns "" if the number is inside the option's limits. Otherwise returns the expected range.
std::string outside(const Option& option, double value) {
  if (option.lowest > option.highest || (value >= option.lowest && value <= option.highest)) return "";
  return std::isinf(option.highest) ? fmt::format("{} or more", option.lowest)
                                    : fmt::format("{} to {}", option.lowest, option.highest);
}

bool is_whole(const std::string& text) { return text.find_first_not_of("0123456789") == std::string::npos; }

// Parses a whole number and stores it in `field` and `option.text`. Returns "", or the expected form if the number is
// invalid.
std::string assign_whole(const std::string& text, std::int64_t& field, Option& option) {
  std::int64_t value = 0;
  if (!parse_whole(text, value, [](const char* s, char** end) { return std::strtoll(s, end, 10); })) return "a whole number";
  if (std::string expected = outside(option, static_cast<double>(value)); !expected.empty()) return expected;
  field = value;
  option.text = fmt::format("{}", field);
  return "";
}

// Parses a number and stores it in `field` and `option.text`. Returns "", or the expected form if the number is invalid.
std::string assign_number(const std::string& text, double& field, Option& option) {
  double value = 0;
  if (!parse_whole(text, value, [](const char* s, char** end) { return std::strtod(s, end); }) || !std::isfinite(value))
    return "a number";
  if (std::string expected = outside(option, value); !expected.empty()) return expected;
  field = value;
  option.text = fmt::format("{}", field);
  return "";
}

// Accepts the word `none`, and calls `assign` for any other text. Returns "", or the expected form if the text is invalid.
// If `none` is a number, the expected form does not mention it.
template <class Assign>
std::string assign_or_none(const std::string& text, const std::string& none, Option& option, const Assign& assign) {
  if (text == none) {
    option.text = text;
    return "";
  }
  const std::string expected = assign();
  return expected.empty() || is_whole(none) ? expected : fmt::format("{}, or {}", expected, none);
}

// Parses a size and stores it in `field` and `option.text`. Returns "", or the expected form if the size is invalid.
std::string assign_bytes(const std::string& text, std::int64_t& field, Option& option) {
  const auto value = parse_bytes(text);
  if (!value) return "a size such as 8, 64K or 1M";
  if (std::string expected = outside(option, static_cast<double>(*value)); !expected.empty()) return expected;
  field = *value;
  option.text = fmt::format("{}", field);
  return "";
}

// Does the same as assign_or_none(), for an optional field, which the word `none` leaves empty.
template <class Assign>
std::string assign_optional(const std::string& text, const std::string& none, std::optional<std::int64_t>& field,
                            Option& option, const Assign& assign) {
  std::int64_t value = 0;
  std::string expected = assign_or_none(text, none, option, [&] { return assign(text, value, option); });
  if (expected.empty()) field = option.text == none ? std::optional<std::int64_t>() : value;
  return expected;
}

// Returns the assign function of an option that accepts every text.
template <class Set>
Option::Assign accept(Set set) {
  return [set = std::move(set)](const std::string& text, Option& option) {
    option.text = text;
    set(text);
    return "";
  };
}

}  // namespace

Option& Options::add(const std::string& name, std::string& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "TEXT", .text = field},
                accept([&field](const std::string& text) { field = text; }));
}

Option& Options::add(const std::string& name, bool& field, const std::string& about) {
  if (!field) return add_switch(name, about, [&field](bool on) { field = on; });
  return insert({.name = name, .about = about, .text = "yes", .choices = {"yes", "no"}},
                accept([&field](const std::string& text) { field = text == "yes"; }));
}

Option& Options::add_no(const std::string& name, bool& field, const std::string& about) {
  require(field, "{} turns off what is off already", name);
  return add_switch(name, about, [&field](bool off) { field = !off; });
}

Option& Options::add_switch(const std::string& name, const std::string& about, std::function<void(bool)> set) {
  return insert({.name = name, .about = about, .text = "false", .is_switch = true},
                [set = std::move(set)](const std::string& text, Option& option) {
                  const auto value = parse_switch(text);
                  if (!value) return "yes or no";
                  set(*value);
                  option.text = *value ? "true" : "false";  // TOML keywords, which config files and records use
                  return "";
                });
}

Option& Options::add_choice(const std::string& name, std::vector<std::string> names, const std::string& first,
                            const std::string& about, std::function<void(const std::string&)> set) {
  return insert({.name = name, .about = about, .metavar = "TEXT", .text = first, .choices = std::move(names)},
                accept(std::move(set)));
}

Option& Options::add(const std::string& name, std::int64_t& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "N", .text = fmt::format("{}", field), .is_number = true},
                [&field](const std::string& text, Option& option) { return assign_whole(text, field, option); });
}

Option& Options::add(const std::string& name, std::uint64_t& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "N", .text = fmt::format("{}", field), .is_number = true},
                [&field](const std::string& text, Option& option) {
                  std::int64_t value = 0;
                  std::string expected = assign_whole(text, value, option);
                  if (expected.empty()) field = static_cast<std::uint64_t>(value);
                  return expected;
                });
}

Option& Options::add(const std::string& name, const std::string& none, std::optional<std::int64_t>& field,
                     const std::string& about) {
  const bool is_number = is_whole(none);
  return insert({.name = name,
                 .about = about,
                 .metavar = is_number ? "N" : "N|" + none,
                 .text = field ? fmt::format("{}", *field) : none,
                 .is_number = is_number},
                [&field, none](const std::string& text, Option& option) {
                  return assign_optional(text, none, field, option, assign_whole);
                });
}

Option& Options::add_bytes(const std::string& name, std::int64_t& field, const std::string& about) {
  Option& added = add(name, field, about);
  added.metavar = "BYTES";
  added.assign = [&field](const std::string& text, Option& option) { return assign_bytes(text, field, option); };
  return added;
}

Option& Options::add_bytes(const std::string& name, const std::string& none, std::optional<std::int64_t>& field,
                           const std::string& about) {
  Option& added = add(name, none, field, about);
  added.metavar = added.is_number ? "BYTES" : "BYTES|" + none;
  added.assign = [&field, none](const std::string& text, Option& option) {
    return assign_optional(text, none, field, option, assign_bytes);
  };
  return added;
}

Option& Options::add_seconds(const std::string& name, double& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "TIME", .text = fmt::format("{}s", field)},
                [&field](const std::string& text, Option& option) {
                  const auto seconds = parse_seconds(text);
                  if (!seconds) return "a time such as 90s, 1.5m or 2h";
                  field = *seconds;
                  option.text = fmt::format("{}s", field);
                  return "";
                });
}

Option& Options::add(const std::string& name, double& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "X", .text = fmt::format("{}", field), .is_number = true},
                [&field](const std::string& text, Option& option) { return assign_number(text, field, option); });
}

Option& Options::add(const std::string& name, const std::string& none, double& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "X|" + none, .text = field != 0 ? fmt::format("{}", field) : none},
                [&field, none](const std::string& text, Option& option) {
                  double value = 0;
                  std::string expected =
                      assign_or_none(text, none, option, [&] { return assign_number(text, value, option); });
                  if (expected.empty()) field = value;
                  return expected;
                });
}

Option& Options::add_relative(const std::string& name, const std::string& whole, Relative& field, const std::string& about) {
  const std::string suffix = "*" + whole;
  const auto text_of = [suffix](const Relative& share) {
    return fmt::format("{}{}", share.value, share.relative ? suffix : "");
  };
  return insert({.name = name, .about = about, .metavar = "X", .text = text_of(field)},
                [&field, text_of, suffix](const std::string& text, Option& option) -> std::string {
                  Relative share(0, text.ends_with(suffix));
                  const std::string number = share.relative ? text.substr(0, text.size() - suffix.size()) : text;
                  if (!parse_whole(number, share.value, [](const char* s, char** end) { return std::strtod(s, end); }) ||
                      !std::isfinite(share.value))
                    return fmt::format("a number, or a share such as 0.1{}", suffix);
                  if (const auto expected = outside(option, share.value); !expected.empty()) return expected;
                  field = share;
                  option.text = text_of(field);
                  return "";
                });
}

Option& Options::add(const std::string& name, std::vector<std::string>& field, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "A,B,…", .text = join(field, ","), .is_list = true},
                accept([&field](const std::string& text) { field = split(text, ','); }));
}

Option& Options::add(const std::string& name, const std::string& about) {
  return insert({.name = name, .about = about, .metavar = "TEXT", .is_source = true}, accept([](const std::string&) {}));
}

Option& Options::add_positional(const std::string& name, std::vector<std::string>& field, const std::string& about) {
  // File names can contain commas.
  return insert({.name = name, .about = about, .metavar = "FILE…", .positional = true, .is_list = true},
                accept([&field](const std::string& text) { field = split(text, '\n'); }));
}

}  // namespace chorale
