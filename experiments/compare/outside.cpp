#include "experiments/compare/outside.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <regex>
#include <set>

#include "experiments/common/parse_number.hpp"
#include "src/base/child_program.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/record/recorder.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_line = 4096;  // longer lines are truncated, because std::regex recurses once per character

// Matches an integer, a decimal fraction, NaN or infinity, but not "1.2k".
const std::string number = R"(([-+]?(?:\d(?:[\d,_]*\d)?\.?\d*(?:[eE][-+]?\d+)?|nan|inf(?:inity)?))(?![\w.]))";
// The number can follow or precede "tokens/s". If both exist, the following number is taken: "step 10, tokens/s: 5210" gives
// 5210.
const std::string usual = "(?:^|[^\\w/])tokens/s(?:ec)?\\s*[=:]?\\s*" + number + "|(?:^|[^\\w.,])" + number +
                          "\\s*tokens/s(?:ec)?(?![\\w/])(?!\\s*[=:]\\s*[-+\\d])";
constexpr std::ptrdiff_t before = 2;  // index of the regex group for a number that precedes its unit

std::vector<std::string> lines_of(const std::string& output) {
  return split(replace_all(output, '\r', '\n'), '\n');  // progress bars end their lines with \r
}

std::string last_lines(const std::string& output) {
  constexpr std::size_t shown = 3, longest = 200;
  std::vector<std::string> last;
  for (const std::string& line : lines_of(output))
    if (const std::string words = trim(escape_control(line)); !words.empty()) last.push_back(first_columns(words, longest));
  if (last.empty()) return "it printed nothing";
  last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(std::min(shown, last.size())));
  return "its last lines: " + join(last, " | ");
}

bool is_executable(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

// Whether exec would find the program. A relative path is relative to the program's working folder.
bool is_found(const std::string& word, const fs::path& folder) {
  if (word.find('/') != std::string::npos) return is_executable(folder / word);
  const char* const path = std::getenv("PATH");
  return std::ranges::any_of(split(path ? path : "/bin:/usr/bin", ':'),
                             [&](const std::string& place) { return is_executable(fs::path(place) / word); });
}

// Whether a launcher (Open MPI, or one built on PMIx, PMI or Hydra) sets this variable for each rank. Variables with which
// users configure Open MPI are not included.
bool is_for_ranks(const std::string& variable) {
  static const char* const beginnings[] = {"PMIX_",
                                           "PMI_",
                                           "PRTE_",
                                           "HYDRA_",
                                           "MPIR_",
                                           "OMPI_MCA_orte",
                                           "OMPI_MCA_ess",
                                           "OMPI_MCA_pmix",
                                           "OMPI_MCA_initial_wdir",
                                           "OMPI_MCA_mpi_oversubscribe",
                                           "OMPI_MCA_shmem_RUNTIME"};
  if (std::ranges::any_of(beginnings, [&](const char* beginning) { return variable.starts_with(beginning); })) return true;
  return variable.starts_with("OMPI_") && !variable.starts_with("OMPI_MCA_") && !variable.starts_with("OMPI_ALLOW_");
}

std::string name_in(const std::string& variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> environment_for(const std::vector<std::string>& added) {
  std::vector<std::string> all = own_environment();
  std::erase_if(all, [&](const std::string& variable) {
    return is_for_ranks(variable) ||
           std::ranges::any_of(added, [&](const std::string& other) { return name_in(other) == name_in(variable); });
  });
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

struct OutsideRow {
  std::int64_t step = 1;
  double time = 0, tokens_per_s = 0;
  static auto columns() {
    return std::tuple{column("step", &OutsideRow::step, "1", "always 1: the program as a whole"),
                      column("time", &OutsideRow::time, "s", "time from the start of the program to its end"),
                      column("tokens_per_s", &OutsideRow::tokens_per_s, "s-1", "as the program printed it")};
  }
};

void record(const Repetition& turn, const fs::path& folder, const OutsideRow& row, Clock& clock) {
  const SuiteRun& run = *turn.run;
  Recorder recorder(folder,
                    {{"run_id", turn.id()},
                     {"cmdline", join(run.outside->words, " ")},
                     {"label", run.outside->label},
                     {"working_folder", fs::absolute(run.outside->folder).string()},
                     {"environment", join(run.outside->environment, " ")},
                     {"hostname", host_name()},
                     {"machine", machine_signature()},
                     {"launchdate", iso_time(clock.wall_seconds())}},
                    clock);
  recorder.number("jobsize", turn.ranks);
  std::string settings;
  for (const Setting& setting : run.settings) settings += fmt::format("{} = {}\n", setting.key, quoted_toml(setting.text));
  recorder.text("config", "toml", settings);
  recorder.append(recorder.table<OutsideRow>({.group = "train", .rows = "step"}), row);
  recorder.finish("ok");
}

}  // namespace

void fill_placeholders(SuiteRun& run, std::vector<Mistake>& mistakes) {
  std::set<std::string> used, unknown;
  static const std::regex placeholder(R"(\{([A-Za-z][\w-]*)\})");
  for (std::string& word : run.outside->words) {
    std::string filled;
    auto from = word.cbegin();
    for (std::sregex_iterator match(word.begin(), word.end(), placeholder), end; match != end; ++match) {
      const std::string key = canonical_key((*match)[1]);
      const Setting* const setting = find(run.settings, key);
      filled.append(from, (*match)[0].first);
      from = (*match)[0].second;
      if (setting) {
        filled += setting->text;
        used.insert(key);
      } else if (key == "ranks" && run.ranks > 0)
        filled += std::to_string(run.ranks);
      else
        unknown.insert((*match)[0]);
    }
    word = filled.append(from, word.cend());
  }
  for (const std::string& word : unknown)
    mistakes.push_back(
        {run.line, fmt::format("the command has {0}, but the run sets no {1}: write {1} = …, or vary.{1} = […]", word,
                               word.substr(1, word.size() - 2))});
  for (const Setting& setting : run.settings)
    if (!used.contains(setting.key))
      mistakes.push_back({run.line, fmt::format("{0} has no effect: the command has no {{{0}}}", setting.key)});
}

void check_outside(const SuiteRun& run, std::vector<Mistake>& mistakes) {
  const OutsideProgram& program = *run.outside;
  for (const std::string& variable : program.environment)
    if (const auto equals = variable.find('='); equals == std::string::npos || equals == 0)
      mistakes.push_back({run.line, fmt::format("environment takes NAME=value, not \"{}\"", variable)});
  if (program.words.empty()) return;  // the mistake has already been reported
  if (!fs::is_directory(program.folder))
    mistakes.push_back({run.line, fmt::format("no such folder: folder = \"{}\"", program.folder)});
  else if (!is_found(program.words[0], program.folder))
    mistakes.push_back(
        {run.line,
         fmt::format("no program {} is found{}; words such as NAME=value belong in environment, and "
                     "a shell must be named: [\"sh\", \"-c\", \"…\"]",
                     program.words[0],
                     program.words[0].find('/') == std::string::npos
                         ? " in PATH"
                         : fmt::format(" from the folder {}", fs::absolute(program.folder).lexically_normal().string()))});
}

std::string why_no_pattern(const std::string& pattern) try {
  const auto groups = std::regex(pattern).mark_count();
  return groups == 1 ? "" : fmt::format("it has {} groups in parentheses, and must have one, for the number", groups);
} catch (const std::regex_error& error) {
  return error.what();
}

Measured number_in(const std::string& output, const std::string& pattern) {
  const std::regex expression(pattern.empty() ? usual : pattern, std::regex::icase);
  std::vector<std::string> found;
  for (const std::string& line : lines_of(output)) {
    const std::string part = line.substr(0, longest_line);
    for (std::sregex_iterator match(part.begin(), part.end(), expression), end; match != end; ++match) {
      const auto group = std::find_if(match->begin() + 1, match->end(), [](const auto& sub) { return sub.matched; });
      if (group == match->end()) continue;
      found.push_back(group->str());
      static const std::regex also_behind(R"(\s+[-+]?\d)");
      if (pattern.empty() && group - match->begin() == before &&
          std::regex_search(match->suffix().first, match->suffix().second, also_behind,
                            std::regex_constants::match_continuous))
        return {.trouble = fmt::format("\"{}\" has a number on both sides of tokens/s: print it as tokens/s: …, or name the "
                                       "line in [measure] pattern",
                                       first_columns(trim(escape_control(part)), 80))};
    }
  }
  const std::string what = pattern.empty() ? "tokens/s beside a number" : fmt::format("a match of {}", pattern);
  if (found.empty()) return {.trouble = fmt::format("no line has {}", what)};
  if (found.size() > 1)
    return {.trouble = fmt::format("{} times {}, the last {}: print one result, or name its line in [measure] pattern",
                                   found.size(), what, found.back())};
  std::string digits = found[0];
  std::erase_if(digits, [](char c) { return c == ',' || c == '_'; });
  const auto value = parse_number(digits);
  if (!value || !std::isfinite(*value) || *value <= 0)
    return {.trouble = fmt::format("{} is no positive number of tokens/s", found[0])};
  return {.tokens_per_s = *value, .trouble = ""};
}

std::string run_outside(const Repetition& turn, const std::string& pattern, const fs::path& folder,
                        const std::vector<int>& cpus, Clock& clock, const std::function<void(int pid)>& meanwhile) {
  const OutsideProgram& program = *turn.run->outside;
  const fs::path place = make_run_folder_at(folder / turn.id());
  const fs::path output = fs::absolute(place / "stdout.txt"), errors = fs::absolute(place / "stderr.txt");
  const double began = clock.seconds();
  const ChildEnd end = run_to_the_end({.words = program.words,
                                       .output = output,
                                       .errors = errors,
                                       .folder = program.folder,
                                       .environment = environment_for(program.environment),
                                       .cpus = cpus},
                                      clock, meanwhile);
  const double seconds = clock.seconds() - began;
  if (!end.trouble.empty()) return fmt::format("{} cannot be started: {}", program.words[0], end.trouble);
  const std::string printed = contents_of(output).value_or(""), complained = contents_of(errors).value_or("");
  const std::string last = last_lines(trim(complained).empty() ? printed : complained);
  if (end.code > 128 && end.code < 128 + NSIG) return fmt::format("ended by {}; {}", strsignal(end.code - 128), last);
  if (end.code != 0) return fmt::format("exit code {}; {}", end.code, last);
  const Measured measured = number_in(printed + "\n" + complained, pattern);
  if (!measured.trouble.empty())
    return fmt::format("{}; {}", measured.trouble, last_lines(trim(printed).empty() ? complained : printed));
  record(turn, place, {.time = seconds, .tokens_per_s = measured.tokens_per_s}, clock);
  return "";
}

}  // namespace chorale::compare
