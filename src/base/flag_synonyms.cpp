// Translates settings under another program's names into our options. Each setting keeps its source and origin.
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

// Whether two values are the same text or the same number ("1" and "1.0").
bool equal(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return a == b || (*end_a == '\0' && *end_b == '\0' && !a.empty() && !b.empty() && x == y);
}

// Translates another program's value into ours; returns nothing if we have no counterpart.
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

// Names all refused settings at once, because a user with a script of forty flags should not meet them one by one.
[[noreturn]] void refuse(const std::vector<std::pair<Setting, std::string>>& refused) {
  std::vector<std::string> names, fixes;
  for (const auto& [setting, instead] : refused) {
    names.push_back(fmt::format("{}{} ({})", setting.key, setting.text == "true" ? "" : " " + setting.text, setting.origin));
    fixes.push_back(refused.size() > 1 ? fmt::format("{}: {}", setting.key, instead) : instead);
  }
  usage_error(refused.size() > 1
                  ? fmt::format("{} settings of another program have no counterpart here", refused.size())
                  : fmt::format("{} belongs to another program and has no counterpart here", refused[0].first.key),
              join(names, ", "), join(fixes, "; "));
}

// Refuses two settings of one option that come from the same source but have different values, because neither overrides the
// other.
void require_agreement(const std::vector<Setting>& by_words, const std::vector<Setting>& all) {
  for (const Setting& a : by_words)
    for (const Setting& b : all)
      if (a.source == b.source && a.key == b.key && !equal(a.text, b.text))
        usage_error(fmt::format("two values for {}", a.key),
                    fmt::format("{} from {}, {} from {}", a.text, a.origin, b.text, b.origin), "give one of them");
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
  std::vector<std::pair<Setting, std::string>> refused;
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
      case Word::Means::refused: refused.emplace_back(setting, word->about); continue;
      default: break;
    }
    const auto value = our_value(*word, setting.text);
    if (!value) refused.emplace_back(setting, what_it_takes(*word));
    if (!value || word->option.empty()) continue;
    translated.text = *value;
    if (word->means == Word::Means::sets)
      by_words.push_back(translated), ours.push_back(translated);
    else
      expected_.push_back({translated, *word});
  }
  if (!refused.empty()) refuse(refused);
  require_agreement(by_words, ours);
  return ours;
}

void Options::require_expected() const {
  for (const auto& [setting, word] : expected_) {
    const Option& option = *find(setting.key);
    if (equal(option.text, setting.text) == (word.means == Word::Means::expects)) continue;
    usage_error(fmt::format("{} and {} do not agree", word.name, option.name),
                fmt::format("{} requires {} {} {}, but {} = {} ({})", setting.origin, option.name,
                            word.means == Word::Means::expects ? "=" : "other than", setting.text, option.name, option.text,
                            option.origin),
                word.about.empty() ? fmt::format("give --{} {}", option.name, setting.text) : word.about);
  }
}

}  // namespace chorale
