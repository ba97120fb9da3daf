#include "experiments/compare/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/common/simulated.hpp"
#include "experiments/compare/outside.hpp"
#include "experiments/report/labels.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"
#include "src/base/toml.hpp"

namespace chorale::compare {
namespace {

using Combination = std::vector<Setting>;

std::size_t line_of(const toml::node& node) { return node.source().begin.line; }

// Returns the entries of a table in the order of the file. The TOML parser returns them in alphabetical order.
std::vector<std::pair<std::string, const toml::node*>> in_order(const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(std::string_view{key}, &node);
  std::ranges::stable_sort(entries, {}, [](const auto& entry) { return line_of(*entry.second); });
  return entries;
}

// Reads one file into a suite, and collects its mistakes.
class SuiteReader {
 public:
  SuiteReader(Suite& suite, std::vector<Mistake>& mistakes) : suite_(suite), mistakes_(mistakes) {}

  void read(const toml::table& root) {
    for (const auto& [name, node] : in_order(root)) {
      if (name == "question")
        take(*node, name, suite_.question);
      else if (name == "ranks")
        take(*node, name, suite_.ranks, 1);
      else if (name == "repetitions")
        take(*node, name, suite_.repetitions, 1);
      else if (name == "warm-up")
        take(*node, name, suite_.warm_up, 0);
      else if (name == "metric")
        take_metric(*node);
      else if (name == "fill-memory")
        take_bytes(*node, name, suite_.fill_memory);
      else if (name == "measure" && node->is_table())
        read_measure(*node->as_table());
      else if (name != "runs" || !node->is_array_of_tables())
        wrong(*node, fmt::format("unknown key \"{}\": a suite has question, metric, ranks, repetitions, warm-up, "
                                 "fill-memory, [measure] and [[runs]]",
                                 name));
    }
    const toml::array* runs = root["runs"].as_array();
    for (std::size_t i = 0; runs && i < runs->size(); ++i)
      if (const toml::table* table = (*runs)[i].as_table()) read_runs(*table);
    if (suite_.runs.empty() && mistakes_.empty()) mistakes_.push_back({1, "no [[runs]]: there is nothing to compare"});
  }

 private:
  void wrong(const toml::node& node, const std::string& what) { mistakes_.push_back({line_of(node), what}); }

  void take(const toml::node& node, const std::string& name, std::string& into) {
    if (const auto text = node.value_exact<std::string>())
      into = *text;
    else
      wrong(node, fmt::format("{} must be a string in quotes", name));
  }

  void take(const toml::node& node, const std::string& name, std::vector<std::string>& into) {
    const toml::array* const list = node.as_array();
    const auto is_text = [](const toml::node& part) { return part.is_string(); };
    if (!list || list->empty() || !std::all_of(list->begin(), list->end(), is_text))
      return wrong(node, fmt::format("{} must be a list of strings", name));
    into.clear();
    for (const toml::node& part : *list) into.push_back(*part.value_exact<std::string>());
  }

  void take(const toml::node& node, const std::string& name, std::int64_t& into, std::int64_t least) {
    if (const auto number = node.value_exact<std::int64_t>(); number && *number >= least && *number <= most)
      into = *number;
    else
      wrong(node, fmt::format("{} must be an integer from {} to {}", name, least, most));
  }

  void take_metric(const toml::node& node) {
    suite_.metric = node.value_exact<std::string>().value_or("");
    if (!std::ranges::count(report::metrics(), suite_.metric))
      wrong(node, fmt::format("metric must be \"{}\"", join(report::metrics(), "\" or \"")));
  }

  void take_bytes(const toml::node& node, const std::string& name, std::int64_t& into) {
    const auto bytes = parse_bytes(node.value_exact<std::string>().value_or(""));
    if (bytes && *bytes > 0)
      into = *bytes;
    else
      wrong(node, fmt::format("{} must be a size in quotes, such as \"8G\"", name));
  }

  void read_measure(const toml::table& table) {
    for (const auto& [name, node] : in_order(table)) {
      if (name != "pattern") {
        wrong(*node, fmt::format("unknown key \"{}\": [measure] has pattern", name));
        continue;
      }
      take(*node, name, suite_.pattern);
      if (const std::string why = why_no_pattern(suite_.pattern); !why.empty())
        wrong(*node, fmt::format("pattern is no regular expression for a number: {}", why));
    }
  }

  // Whether the run is a different program: its command then has several words, or a path.
  static bool is_outside(const toml::table& table) {
    const toml::node* const command = table.get("command");
    const auto text = command ? command->value_exact<std::string>() : std::nullopt;
    return command && (command->is_array() || (text && text->find_first_of(" /") != std::string::npos));
  }

  void take_outside(const toml::node& node, const std::string& name, SuiteRun& run) {
    if (name == "label")
      take(node, name, run.outside->label);
    else if (name == "folder")
      take(node, name, run.outside->folder);
    else if (name == "environment")
      take(node, name, run.outside->environment);
    else if (node.is_array())
      take(node, name, run.outside->words);
    else {
      for (const std::string& word : split(node.value_or(std::string()), ' '))
        if (!word.empty()) run.outside->words.push_back(word);
      if (run.outside->words.empty()) wrong(node, "the command is empty");
    }
  }

  void read_runs(const toml::table& table) {
    SuiteRun plain{.command = "train", .line = line_of(table), .ranks = static_cast<int>(suite_.ranks)};
    if (is_outside(table)) plain.outside.emplace();
    static const std::set<std::string> of_outside{"command", "label", "folder", "environment"};
    std::vector<Combination> combinations{{}};
    for (const auto& [name, node] : in_order(table)) {
      if (plain.outside && of_outside.contains(name))
        take_outside(*node, name, plain);
      else if (name == "command")
        take(*node, name, plain.command);
      else if (name == "vary" && node->is_table())
        vary(*node->as_table(), combinations);
      else
        take_setting(name, *node, plain);
    }
    for (const Combination& combination : combinations) add(plain, combination);
  }

  // The key `ranks` is not an option of the command. The key gives the number of started ranks that the run uses.
  void take_setting(const std::string& name, const toml::node& node, SuiteRun& run) {
    std::int64_t ranks = 0;
    if (name == "ranks") {
      take(node, name, ranks, 1);
      run.ranks = static_cast<int>(ranks);
    } else if (const auto setting = setting_of(name, node))
      run.settings.push_back(*setting);
  }

  std::optional<Setting> setting_of(const std::string& name, const toml::node& node) {
    const std::string origin = fmt::format("{}:{}", suite_.file.string(), line_of(node));
    if (node.is_table() || node.is_array_of_tables())
      wrong(node, fmt::format("\"{}\" is a table; settings that differ between runs belong in vary", name));
    else
      try {
        return Setting{canonical_key(name), setting_text(node, name, origin), origin, Source::config};
      } catch (const Error& error) {
        wrong(node, split(error.what(), '\n')[0]);
      }
    return std::nullopt;
  }

  // Builds all combinations of the varied settings: for each setting, extends every combination of the previous settings by
  // every value of this setting.
  void vary(const toml::table& table, std::vector<Combination>& combinations) {
    for (const auto& [name, node] : in_order(table)) {
      const toml::array* values = node->as_array();
      if (!values || values->empty()) {
        wrong(*node, fmt::format("vary.{} must be a list of values", name));
        continue;
      }
      const std::string key = canonical_key(name);
      if (!std::count(suite_.varied.begin(), suite_.varied.end(), key)) suite_.varied.push_back(key);
      std::vector<Combination> more;
      for (const Combination& before : combinations)
        for (const toml::node& value : *values) {
          const auto setting = setting_of(name, value);
          if (!setting) continue;
          std::int64_t ranks = 0;
          if (key == "ranks") take(value, name, ranks, 1);
          if (key == "ranks" && ranks == 0) continue;
          more.push_back(before);
          more.back().push_back(*setting);
        }
      combinations = std::move(more);
    }
  }

  void add(const SuiteRun& plain, const Combination& combination) {
    SuiteRun run = plain;
    std::vector<std::string> parts;
    for (const Setting& setting : combination) {
      parts.push_back(setting.key == "ranks" ? setting.text + "ranks" : setting.text);
      if (setting.key == "ranks")
        run.ranks = std::atoi(setting.text.c_str());
      else
        run.settings.push_back(setting);
    }
    if (run.outside) name_outside(run, combination);
    run.name = free_name(run.outside ? run.outside->label : parts.empty() ? run.command : join(parts, "-"));
    suite_.runs.push_back(std::move(run));
  }

  void name_outside(SuiteRun& run, const Combination& combination) {
    if (run.outside->words.empty()) return;
    fill_placeholders(run, mistakes_);
    run.command = join(run.outside->words, " ");
    if (run.outside->label.empty())
      run.outside->label = run.command;
    else
      for (const Setting& setting : combination) run.outside->label += ", " + report::in_label(setting.key, setting.text);
    if (!labels_.insert(run.outside->label).second)  // otherwise their values would count as repetitions of one run
      mistakes_.push_back(
          {run.line, fmt::format("two runs are called \"{}\": name them apart with label = …", run.outside->label)});
  }

  // Makes a name unique. Replaces characters that folders or HDF5 groups do not allow, and limits the length of the name,
  // because file systems limit the length of a folder's name.
  std::string free_name(std::string name) {
    name = name.substr(0, 100);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
    std::string free = name;
    for (int i = 2; !names_.insert(free).second; ++i) free = fmt::format("{}_{}", name, i);
    return free;
  }

  static constexpr std::int64_t most = 1'000'000;
  Suite& suite_;
  std::vector<Mistake>& mistakes_;
  std::set<std::string> names_, labels_;
};

}  // namespace

const Setting* find(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &Setting::key);
  return found == settings.end() ? nullptr : &*found;
}

std::string SuiteRun::text_of(const std::string& key) const {
  const Setting* const setting = find(settings, key);
  return setting ? setting->text : "";
}

bool SuiteRun::simulated() const {
  return find(settings, "backend") && std::ranges::all_of(split(text_of("backend"), ','), is_simulated);
}

int SuiteRun::processes(int started) const { return simulated() ? 1 : ranks ? ranks : started; }

void refuse_mistakes(const Suite& suite, std::vector<Mistake> mistakes, std::size_t half_checked) {
  std::sort(mistakes.begin(), mistakes.end());
  mistakes.erase(std::unique(mistakes.begin(), mistakes.end()), mistakes.end());
  if (mistakes.empty()) return;
  std::vector<std::string> lines;
  for (const Mistake& mistake : mistakes)
    lines.push_back(fmt::format("{}:{}: {}", suite.file.string(), mistake.line, mistake.text));
  const std::string what =
      fmt::format("nothing was run: the suite has {} mistake{}", lines.size(), lines.size() > 1 ? "s" : "");
  if (half_checked > 0)
    lines.push_back(fmt::format("how the settings of {} run{} fit together is checked once these mistakes are corrected",
                                half_checked, half_checked > 1 ? "s" : ""));
  throw Error(Exit::usage, what, lines);
}

Suite parse_suite(const std::filesystem::path& file, const std::string& text, std::vector<Mistake>& mistakes) {
  Suite suite{.file = file, .text = text};
  try {
    const toml::table root = toml::parse(suite.text, file.string());
    SuiteReader(suite, mistakes).read(root);
  } catch (const toml::parse_error& error) {
    mistakes.push_back({error.source().begin.line, std::string(error.description())});
  }
  return suite;
}

Suite read_suite(const std::filesystem::path& file, std::vector<Mistake>& mistakes) {
  return parse_suite(file, config_text(file, "chorale compare"), mistakes);
}

}  // namespace chorale::compare
