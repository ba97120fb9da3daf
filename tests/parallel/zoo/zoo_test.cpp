// Applies every detector to every mistake of the bug zoo, and to correct runs on the same layouts. The tables of
// docs/bug_zoo.md must equal the results. This command rewrites the page:
//
//   ZOO_TABLE=docs/bug_zoo.md build/tests_run "the proof catches*"
//
// A mistake that the proof did not catch would also pass the layout tests. One known mistake, label smoothing over a
// vocabulary shard, is omitted, because Chorale has no label smoothing.
#include <fmt/ranges.h>

#include "src/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/parallel/zoo/detectors.hpp"

namespace chorale::zoo {
namespace {

constexpr int steps_of_table = 12, steps_of_others = 2;

// `make test` applies the detectors only to every fourth mistake, and checks the row of this mistake on the page.
bool has_all() { return test::thorough() || !test::environment("ZOO_TABLE", "").empty(); }

// Correct runs, which are compared with runs with mistakes. Each correct run is executed only once.
class RightRuns {
 public:
  const test::Seen& on_one_rank(const Mistake& mistake) {
    test::Seen& seen = one_rank_[mistake.setting];
    HostMemory host;
    if (seen.steps.empty()) seen = watch(options_of_one_rank(mistake), Mesh(), host, steps_of_table).seen;
    return seen;
  }
  void raise_no_alarm(const char* word, const Mistake& mistake, int steps) {
    int& longest = longest_[{mistake.setting, word}];
    if (longest >= steps) return;
    longest = steps;
    const Findings found = findings_in(parse_layout(word, 0), mistake, false, on_one_rank(mistake), steps);
    for (const Finding& finding : found) CHECK(finding.details == "");
  }

 private:
  using Setting = void (*)(TrainingOptions&);
  std::map<Setting, test::Seen> one_rank_;
  std::map<std::pair<Setting, std::string>, int> longest_;
};

std::string row_of(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string table_of(std::vector<std::string> columns, const std::string& rows) {
  const std::string heading = row_of(columns);
  std::ranges::fill(columns, "---");
  std::string line = row_of(columns);
  std::erase(line, ' ');
  return heading + line + rows;
}

std::vector<std::string> with_detectors(std::vector<std::string> before, const std::vector<std::string>& after = {}) {
  for (const Detector& detector : detectors) before.emplace_back(detector.name);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

// The number of mistakes that each detector catches, and the number of mistakes that only the proof catches.
struct Counts {
  int mistakes = 0, alone = 0;
  std::array<int, how_many> caught{};

  void add(const Counts& other) {
    mistakes += other.mistakes;
    alone += other.alone;
    for (std::size_t d = 0; d < how_many; ++d) caught[d] += other.caught[d];
  }
  std::string row(const std::string& title) const {
    std::vector<std::string> cells{title, std::to_string(mistakes)};
    for (const int count : caught) cells.push_back(std::to_string(count));
    cells.push_back(std::to_string(alone));
    return row_of(cells);
  }
};

// A section of the page, with a row for each mistake. Mistakes that only the proof catches are bold.
struct Section {
  std::string title, rows = {};
  Counts counts = {};

  void add(const Mistake& mistake, const Findings& found) {
    Counts one{.mistakes = 1};
    for (std::size_t d = 0; d < how_many; ++d) one.caught[d] = !found[d].cell.empty();
    one.alone = std::ranges::count(one.caught, 1) == 1 && one.caught[proof] == 1;
    std::vector<std::string> cells{mistake.about, fmt::format("`{}`", mistake.layouts.front())};
    for (const Finding& finding : found) cells.push_back(finding.cell.empty() ? "–" : finding.cell);
    if (one.alone) cells.back() = "**" + cells.back() + "**";
    rows += row_of(cells);
    counts.add(one);
  }
  std::string heading() const { return "## " + title + "\n"; }
  std::string text() const { return heading() + "\n" + table_of(with_detectors({"mistake", "layout"}), rows); }
};

// Returns the index on the page at which a section begins, and the section's length.
std::pair<std::size_t, std::size_t> place_of(const std::string& heading, const std::string& page) {
  const std::size_t begins = page.find(heading);
  REQUIRE(begins != std::string::npos);
  const std::size_t next = page.find("\n## ", begins);
  return {begins, next == std::string::npos ? page.size() - begins : next - begins};
}

void compare_with_page(const std::string& heading, const std::string& text) {
  if (const std::string path = test::environment("ZOO_TABLE", ""); !path.empty()) {
    std::string page = test::bytes_in(path);
    const auto [begins, length] = place_of(heading, page);
    page.replace(begins, length, text);
    test::put_bytes(path, page);
  }
  INFO("to write the page anew: ZOO_TABLE=docs/bug_zoo.md build/tests_run \"the proof catches*\"");
  const std::string page = test::bytes_in("docs/bug_zoo.md");
  const auto [begins, length] = place_of(heading, page);
  CHECK(page.substr(begins, length) == text);
}

void find_on_page(const std::string& heading, const std::string& rows) {
  const std::string page = test::bytes_in("docs/bug_zoo.md");
  const auto [begins, length] = place_of(heading, page);
  for (const std::string& row : split(rows, '\n')) CHECK_THAT(page.substr(begins, length), Catch::Contains(row));
}

Section shown(const char* title, const std::vector<Mistake>& mistakes, RightRuns& right, test::Sample& sample) {
  Section section{title};
  for (const Mistake& mistake : mistakes) {
    if (!sample.takes()) continue;
    for (const char* word : mistake.layouts) {
      INFO(mistake.about << " in " << word);
      const bool in_table = word == mistake.layouts.front();
      const int steps = in_table ? steps_of_table : steps_of_others;
      right.raise_no_alarm(word, mistake, steps);
      const Findings found = findings_in(parse_layout(word, 0), mistake, true, right.on_one_rank(mistake), steps);
      CHECK_THAT(found[proof].details, Catch::Contains(mistake.proof));
      if (!in_table) continue;
      section.add(mistake, found);
      // With a smaller margin, the table could differ between machines.
      for (const Finding& finding : found) CHECK(finding.margin > 0.03);
    }
  }
  return section;
}

TEST_CASE("the proof catches every mistake of the bug zoo, and docs/bug_zoo.md says what other detectors catch",
          "[threads]") {
  RightRuns right;
  std::string rows;
  Counts all;
  test::Sample sample(has_all() ? 1 : 4);
  for (const auto& [title, mistakes] : {std::pair{"Sums of gradients", mistakes_in_gradients()},
                                        {"Norm and clipping", mistakes_in_norms()},
                                        {"Weights, optimizer states, resumed runs", mistakes_in_weights()},
                                        {"Divided layers", mistakes_in_layers()},
                                        {"Samples and dropout masks", mistakes_in_samples()},
                                        {"Divided sequences", mistakes_in_tokens()},
                                        {"Experts", mistakes_in_experts()}}) {
    const Section section = shown(title, mistakes, right, sample);
    if (has_all())
      compare_with_page(section.heading(), section.text());
    else
      find_on_page(section.heading(), section.rows);
    rows += section.counts.row(title);
    all.add(section.counts);
  }
  const std::string heading = "## How many mistakes each detector catches\n";
  const std::vector<std::string> columns = with_detectors({"", "mistakes"}, {"proof alone"});
  if (has_all()) compare_with_page(heading, heading + "\n" + table_of(columns, rows + all.row("all")));
  CHECK(all.caught[proof] == all.mistakes);
}

TEST_CASE("the tolerance of the bug zoo's loss curves is the noise between runs with other seeds", "[threads]") {
  HostMemory host;
  const auto trained = [&](std::uint64_t seed) {
    TrainingOptions options = options_of_one_rank({});
    options.seed = seed;
    return watch(options, Mesh(), host, steps_of_table).seen;
  };
  const test::Seen one = trained(1234);
  double noise = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) noise = std::max(noise, loss_difference(one, trained(seed)));
  CHECK(noise < loss_tolerance);
  CHECK(noise > loss_tolerance / 2);
}

}  // namespace
}  // namespace chorale::zoo
