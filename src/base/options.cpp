#include "src/base/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/base/error.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"

namespace chorale {

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

namespace {

// Whether a value can be the text of this option. Options without choices are numbers or switches here.
bool takes(const Option& option, const std::string& value) {
  if (option.is_switch) return value == "true" || value == "false";
  if (!option.choices.empty()) return std::ranges::count(option.choices, value) > 0;
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  return option.is_number && !value.empty() && *end == '\0';
}

}  // namespace

Option& Option::only_with_texts(const Option& other, const std::vector<std::string>& values) {
  for (const std::string& value : values)
    require(takes(other, value), "{} has an effect only with {} {}, but {} never has this value", name, other.name, value,
            other.name);
  const auto why_not = [&other, values]() -> std::string {
    if (std::ranges::count(values, other.text)) return "";
    return fmt::format("{} = {} ({})", other.name, other.text, other.origin);
  };
  std::vector<std::string> words = values;
  for (std::string& word : words)  // a switch is true or false in records, but yes or no in messages
    if (word == "true" || word == "false") word = word == "true" ? "yes" : "no";
  conditions.push_back({why_not, fmt::format("{} {}", other.name, either(words))});
  return *this;
}

Option& Option::only_where(const std::string& needs, std::function<std::string()> why_not) {
  conditions.push_back({std::move(why_not), needs});
  return *this;
}

std::string canonical_key(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  return replace_all(lower(std::move(name)), '_', '-');
}

namespace {

// Returns "1000" for "1e3", "1k" or "1000.0", and "" for any string that is not such a number.
std::string whole_number(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string unit = lower(end);
  value *= unit == "k" ? 1e3 : unit == "m" ? 1e6 : unit == "b" || unit == "g" ? 1e9 : 1;
  const bool known = end != text.c_str() && (unit.empty() || value != std::strtod(text.c_str(), nullptr));
  return known && value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value) : "";
}

}  // namespace

Option& Options::insert(Option option, Option::Assign assign) {
  require(!find(option.name), "option {} of {} is declared twice", option.name, command_);
  option.section = section_;
  option.effect = option.is_source ? Effect::output : effect_;  // the settings in the source are other options
  option.initial = option.text;
  option.assign = std::move(assign);
  return options_.emplace_back(std::move(option));
}

void Options::only_where(const std::string& needs, const std::function<std::string()>& why_not,
                         const std::function<void()>& declare) {
  const std::size_t before = options_.size();
  declare();
  for (std::size_t i = before; i < options_.size(); ++i) options_[i].only_where(needs, why_not);
}

void Options::pass_on(const Options& other, const std::vector<std::string>& except) {
  for (const Option& theirs : other.options_) {
    if (theirs.positional || find(theirs.name) || std::count(except.begin(), except.end(), theirs.name)) continue;
    Option& option = insert(theirs, [](const std::string& text, Option& own) {
      own.text = text;
      return "";
    });
    option.passed_on = true;
    if (!option.choices.empty()) option.suggestions = std::exchange(option.choices, {});
    option.conditions.clear();
    option.synonyms.clear();
    option.replaced.clear();
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

const Option& Options::option(const std::string& name) const {
  const Option* option = find(name);
  require(option, "{} has no option called {}", command_, name);
  return *option;
}

const std::string& Options::origin(const std::string& name) const { return option(name).origin; }

void Options::set(const Setting& setting) {
  take(setting);
  report_mistakes();
}

void Options::refuse_unknown(const std::string& name, const std::string& origin) {
  const bool flag = name.starts_with("-");
  const std::string unknown = flag ? "unknown flag " + name : fmt::format("unknown option \"{}\"", name);
  auto [ours, instead] = familiar_name(canonical_key(name), names());
  if (ours.empty() && instead.empty()) {
    std::vector<std::string> known = names();
    known.insert(known.begin(), "help");
    ours = nearest(canonical_key(name), known);
  }
  if (!ours.empty())
    instead = fmt::format("did you mean {}?{}{}", flag ? dashes(ours) + ours : fmt::format("\"{}\"", ours),
                          instead.empty() ? "" : " ", instead);
  const bool explained = !instead.empty() && !instead.ends_with('?');
  refuse({unknown, fmt::format("{} has no such {} ({})", command_, flag ? "flag" : "option", origin),
          explained ? instead : fmt::format("{}{}{} --help lists them all", instead, instead.empty() ? "" : " ", command_),
          fmt::format("{}{}{}{}", unknown, flag ? "" : fmt::format(" ({})", origin), instead.empty() ? "" : ": ", instead)});
}

void Options::take(const Setting& setting) {
  auto* option = const_cast<Option*>(find(setting.key));
  if (!option) return refuse_unknown(setting.key, setting.origin);
  std::string expected, near, text = setting.text;
  for (const auto& [theirs, ours] : option->synonyms)
    if (text == theirs) text = ours;
  if (const auto value = parse_switch(text); value && std::ranges::count(option->choices, *value ? "yes" : "no"))
    text = *value ? "yes" : "no";
  if (!option->choices.empty())
    for (const std::string& part : option->is_list ? split(text, ',') : std::vector<std::string>{text})
      if (!std::count(option->choices.begin(), option->choices.end(), part)) {
        expected = join(option->choices, ", ");
        near = familiar_value(part, option->choices);
      }
  if (expected.empty()) expected = option->assign(text, *option);
  if (expected == "a whole number") near = whole_number(text);
  if (!expected.empty()) {
    const std::string takes = fmt::format("{}{} takes {}{}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                                          option->name, option->choices.empty() ? "" : "one of ", expected);
    const std::string found = fmt::format("{} = {} ({})", setting.key, setting.text, setting.origin);
    return refuse(
        {fmt::format("\"{}\" is not a value of {}", setting.text, option->name), found, takes, found + ": " + takes});
  }
  option->origin = setting.origin;
  option->source = setting.source;
  if (setting.origin == "default") option->initial = option->text;
}

std::string Options::why_idle(const Option& option) const {
  for (const Condition& condition : option.conditions)
    if (std::string why = condition.why_not(); !why.empty()) return why;
  return "";
}

void Options::report_mistakes() {
  if (mistakes_.empty()) return;
  std::vector<WrongSetting> all;
  std::vector<std::string> lines;
  for (WrongSetting& wrong : std::exchange(mistakes_, {}))
    if (!std::ranges::count(lines, wrong.line)) {
      lines.push_back(wrong.line);
      all.push_back(std::move(wrong));
    }
  if (all.size() == 1) usage_error(all[0].what, all[0].numbers, all[0].fix);
  const std::string what = fmt::format("{} settings of {} cannot be used", lines.size(), command_);
  lines.push_back(fmt::format("{} --help lists all options{}", command_,
                              foreign_words_.empty() ? "" : ", docs/other_programs.md those of Megatron-LM and DeepSpeed"));
  throw Error(Exit::usage, what, lines);
}

void Options::settle() {
  refuse_unexpected();
  report_mistakes();
  for (Option& option : options_) {
    if (option.source == Source::other) continue;
    const std::string why = why_idle(option);
    if (why.empty()) continue;
    const std::string found = fmt::format("{} = {} ({})", option.name, option.text, option.origin);
    if (option.source == Source::foreign) {
      note(fmt::format("{} has no effect: {}", found, why));
      option.assign(option.initial, option);
      option.origin = "default";
      option.source = Source::other;
    } else if (option.source != Source::config || option.text != option.initial) {
      std::vector<std::string> needs;
      for (const Condition& condition : option.conditions) needs.push_back(condition.needs);
      const std::string fix = fmt::format("leave it out: it works only with {}", join(needs, " and "));
      refuse({fmt::format("{} has no effect here", option.name), fmt::format("{}; {}", found, why), fix,
              fmt::format("{} has no effect: {}; {}", found, why, fix)});
    }
  }
  report_mistakes();
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
  const std::size_t columns = screen_columns();
  std::string out, section;
  for (const Option& option : options_) {
    if (option.passed_on) continue;
    if (option.section != section) out += fmt::format("{}{}\n", out.empty() ? "" : "\n", section = option.section);
    const auto [head, tail] = described(option);
    const bool beside = head.size() <= 26;
    if (!beside) out += paragraph("  ", head, columns);
    out += paragraph(fmt::format("  {:<26}  ", beside ? head : ""), tail, columns);
  }
  const bool takes_sizes =
      std::ranges::any_of(options_, [](const Option& option) { return option.metavar.starts_with("BYTES"); });
  if (takes_sizes)
    out += "\n" + paragraph("BYTES: ", "80G and 80GiB are 80 · 2³⁰ bytes, 80GB is 80 · 10⁹; K, M and T likewise", columns);
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
