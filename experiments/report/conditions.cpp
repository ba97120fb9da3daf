#include "experiments/report/conditions.hpp"

#include <set>

#include "experiments/report/recorded_option.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

using Values = std::set<std::string>;  // the values of one condition in the runs of a record set

// The values of each condition, in the order of the table.
std::vector<std::pair<std::string, Values>> conditions_of(const RecordSet& records, const std::set<std::string>& settings) {
  std::vector<std::pair<std::string, Values>> all;
  const auto tell = [&](const std::string& name, auto of) {
    Values values;
    for (const RecordedRun& run : records.runs) values.insert(of(run));
    all.emplace_back(name, std::move(values));
  };
  const auto attribute = [](const char* name) { return [name](const RecordedRun& run) { return run.attribute(name); }; };
  tell("command", [](const RecordedRun& run) { return run.command; });
  tell("machine", attribute("machine"));
  tell("hosts", attribute("hostlist"));
  tell("ranks of each host", attribute("topology"));
  tell("ranks", attribute("jobsize"));
  tell("layout", [](const RecordedRun& run) { return run.layout; });
  for (const std::string& key : settings) tell(key, [&](const RecordedRun& run) { return run.setting(key); });
  for (const auto& [name, fact] : {std::pair{"commit", "git_commit"}, {"compiler", "compiler"}, {"flags", "cxxflags"}})
    tell(name, attribute(fact));
  return all;
}

std::set<std::string> settings_of(const RecordSet& records) {
  std::set<std::string> keys;
  for (const RecordedRun& run : records.runs)
    for (const auto& [key, value] : run.settings)
      if (tells_runs_apart(run.command, key)) keys.insert(key);
  return keys;
}

std::string cell(const Values& values) {
  constexpr int widest = 60;
  const std::string text = join({values.begin(), values.end()}, ", ");
  if (trim(text).empty()) return "-";
  return shortened(text, widest);
}

}  // namespace

TextTable differing_conditions(const RecordSet& one, const RecordSet& other) {
  std::set<std::string> settings = settings_of(one);
  settings.merge(settings_of(other));
  const auto first = conditions_of(one, settings), second = conditions_of(other, settings);
  TextTable table({"what differs", "A", "B"});
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i].second != second[i].second) table.add({first[i].first, cell(first[i].second), cell(second[i].second)});
  return table;
}

}  // namespace chorale::report
