// Translates settings that use another program's option names into settings of Chorale's options. Each setting keeps its
// source and origin.
#include "src/base/flag_synonyms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "src/base/error.hpp"
#include "src/base/options.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Whether two values are the same string or the same number ("1" and "1.0").
bool equal(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return a == b || (*end_a == '\0' && *end_b == '\0' && !a.empty() && !b.empty() && x == y);
}

// Translates a value of a different program into Chorale's value. Returns nothing if there is no corresponding value.
std::optional<std::string> our_value(const Word& word, const std::string& text) {
  if (word.values.empty()) return text;
  if (word.is_switch() && parse_switch(text)) return word.values[0].second;
  for (const auto& [theirs, ours] : word.values)
    if (equal(theirs, text)) return ours;
  return {};
}

std::string what_it_takes(const Word& word) {
  std::vector<std::string> taken;
  for (const auto& [theirs, ours] : word.values) taken.push_back(theirs);
  return fmt::format("{} is accepted; {}", either(taken), word.about);
}

WrongSetting without_counterpart(const Setting& setting, const std::string& instead) {
  const std::string found = fmt::format(
      "{}{} ({})", setting.key, setting.text == "true" || setting.text.empty() ? "" : " " + setting.text, setting.origin);
  return {fmt::format("{} belongs to another program and has no counterpart here", setting.key), found, instead,
          fmt::format("{}: {}", found, instead)};
}

// Returns pairs of settings for the same option that come from the same source but have different values. Neither setting of
// such a pair overrides the other.
std::vector<WrongSetting> contradictions(const std::vector<Setting>& by_words, const std::vector<Setting>& all) {
  std::vector<WrongSetting> found;
  for (std::size_t i = 0; i < by_words.size(); ++i)
    for (const Setting& b : all) {
      const Setting& a = by_words[i];
      const auto is_b = [&](const Setting& other) { return other.origin == b.origin && other.text == b.text; };
      const bool named_before = std::any_of(by_words.begin(), by_words.begin() + static_cast<std::ptrdiff_t>(i), is_b);
      if (a.source != b.source || a.key != b.key || equal(a.text, b.text) || named_before) continue;
      const std::string what = fmt::format("two values for {}", a.key),
                        numbers = fmt::format("{} from {}, {} from {}", a.text, a.origin, b.text, b.origin);
      found.push_back({what, numbers, "give one of them", fmt::format("{}: {}", what, numbers)});
    }
  return found;
}

}  // namespace

void Options::add_words(const std::vector<Word>& words) {
  for (const Word& word : words)
    if (word.means != Word::Means::same && (word.option.empty() || find(word.option))) foreign_words_.push_back(word);
}

const Word* Options::find_word(const std::string& key) const {
  const auto found =
      std::find_if(foreign_words_.begin(), foreign_words_.end(), [&](const Word& word) { return word.name == key; });
  return found == foreign_words_.end() ? nullptr : &*found;
}

std::vector<Setting> Options::in_our_names(const std::vector<Setting>& settings) {
  std::vector<Setting> ours, by_words;
  for (const Setting& setting : settings) {
    const Word* const word = find(setting.key) ? nullptr : find_word(setting.key);
    if (!word) {
      ours.push_back(setting);
      continue;
    }
    if (word->is_switch() && parse_switch(setting.text) == false) continue;
    Setting translated = setting;
    translated.key = word->option;
    translated.origin = fmt::format("{} ({})", setting.key, setting.origin);
    switch (word->means) {
      case Word::Means::nothing: note(fmt::format("{} has no effect: {}", translated.origin, word->about)); continue;
      case Word::Means::refused: refuse(without_counterpart(setting, word->about)); continue;
      default: break;
    }
    const auto value = our_value(*word, setting.text);
    if (!value) refuse(without_counterpart(setting, what_it_takes(*word)));
    if (!value || word->option.empty()) continue;
    translated.text = *value;
    if (word->means == Word::Means::sets) {
      by_words.push_back(translated);
      ours.push_back(translated);
    } else
      expected_.push_back({translated, *word});
  }
  for (WrongSetting& wrong : contradictions(by_words, ours)) refuse(std::move(wrong));
  return ours;
}

void Options::refuse_unexpected() {
  for (const auto& [setting, word] : expected_) {
    const Option& option = *find(setting.key);
    if (equal(option.text, setting.text) == (word.means == Word::Means::expects)) continue;
    const std::string numbers = fmt::format("{} requires {} {} {}, but {} = {} ({})", setting.origin, option.name,
                                            word.means == Word::Means::expects ? "=" : "other than", setting.text,
                                            option.name, option.text, option.origin);
    refuse({fmt::format("{} and {} do not agree", word.name, option.name), numbers,
            word.about.empty() ? fmt::format("give --{} {}", option.name, setting.text) : word.about, numbers});
  }
}

}  // namespace chorale
