#include "experiments/report/page.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "experiments/common/each.hpp"
#include "experiments/report/canvas.hpp"
#include "experiments/report/disturbed.hpp"
#include "experiments/report/figures/figures.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr const char* page_style = R"css(
:root { color-scheme: light dark; --link: #0062a3; --shadow: rgb(28 36 48 / .35) }
@media (prefers-color-scheme: dark) { :root { --link: #6db3ee; --shadow: rgb(255 255 255 / .3) } }
* { box-sizing: border-box }
html { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; -webkit-text-size-adjust: 100% }
body { max-width: 80rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 0 0 .25rem }
p { margin: .25rem 0; max-width: 75ch; overflow-wrap: anywhere }
.shows { font-size: 1.1rem; margin: .75rem 0 }
.facts, .left-out { color: var(--quiet); font-size: .9rem }
.warning { border-left: 4px solid var(--s1); padding-left: .75rem }
section { border-top: 1px solid var(--grid); padding: 1.5rem 0 .75rem }
.charts { display: grid; grid-template-columns: 1fr 1fr; gap: 1.25rem 2rem; align-items: start; margin: .75rem 0 }
figure { margin: 0; min-width: 0 } .whole { grid-column: 1 / -1 }
figcaption { font-weight: 600; margin-bottom: .25rem; overflow-wrap: anywhere }
.save { float: right; margin-left: 1rem; color: var(--link); font-weight: 400; font-size: .8rem; line-height: 1.9 }
.chart, .pipeline { display: block; width: 100%; height: auto }
.narrow { display: none }
@media (max-width: 68rem) {
  .charts { grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)) } .whole { grid-column: auto }
  .roomy { display: none } .narrow { display: block }
}
.patterns { position: absolute }
details { margin: .5rem 0 } summary { cursor: pointer; color: var(--link) }
/* A table that goes on to the right or below has a shadow there, and a scroll bar that stays. The covers hide the shadows at
   the ends: they scroll with the table, the shadows do not. */
.table { overflow: auto; max-height: 32rem; scrollbar-width: thin; scrollbar-color: var(--axis) transparent;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 3rem 100% local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 3rem 100% local,
    linear-gradient(to right, var(--shadow), transparent) left / .9rem 100% scroll,
    linear-gradient(to left, var(--shadow), transparent) right / .9rem 100% scroll;
  background-repeat: no-repeat }
.table::-webkit-scrollbar { height: 8px; width: 8px }
.table::-webkit-scrollbar-thumb { background: var(--axis); border-radius: 4px }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--grid); white-space: nowrap }
th { color: var(--quiet); font-weight: 600; position: sticky; top: 0; background: var(--paper) }
.number { text-align: right }
@media print {
  html { font-size: 11pt } body { max-width: none; padding: 0 }
  section { break-inside: auto } figure, tr, h2 { break-inside: avoid } h2 { break-after: avoid }
  .table { overflow: visible; max-height: none; background: none } .save { display: none }
  .charts { grid-template-columns: 1fr 1fr }
}
)css";

std::string html_paragraph(const std::string& text, const std::string& kind = "") {
  return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : " class=\"" + kind + "\"", escape_xml(text));
}

// A table that can also be scrolled with the keyboard.
std::string scrolled(const std::string& table) {
  return fmt::format("<div class=\"table\" tabindex=\"0\">{}</div>\n", table);
}

std::string folded(const std::string& what, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_xml(what), scrolled(html));
}

std::string attribute(const RecordSet& records, const std::string& name) {
  std::set<std::string> values;
  for (const RecordedRun& run : records.runs)
    if (const std::string value = run.attribute(name); !value.empty()) values.insert(value);
  return join({values.begin(), values.end()}, ", ");
}

std::string counted_commands(const RecordSet& records) {
  std::map<std::string, int> commands;
  for (const RecordedRun& run : records.runs)
    ++commands[run.command == another_program ? run.command : trim("chorale " + (run.launched() ? "launch" : run.command))];
  std::vector<std::string> words;
  for (const auto& [command, count] : commands)
    words.push_back(count == 1 ? "a run of " + command : fmt::format("{} runs of {}", count, command));
  return join(words, ", ");
}

std::string what_ran(const RecordSet& records) {
  const RecordedRun* alone = records.runs.size() == 1 ? &records.runs.front() : nullptr;
  std::string text = counted_commands(records) + (alone && alone->command == "train" ? ": " + alone->label : "");
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

// The suite's question; without a suite, the commands of the runs.
std::string title_of(const RecordSet& records) {
  return records.questions.size() == 1 && !records.questions[0].empty() ? records.questions[0] : what_ran(records);
}

std::string facts_of(const RecordSet& records) {
  std::vector<std::string> parts;
  if (const std::string ran = what_ran(records); ran != title_of(records)) parts.push_back(ran);
  std::set<std::int64_t> ranks;
  for (const RecordedRun& run : records.runs)
    if (run.command != another_program || run.attributes.contains("jobsize")) ranks.insert(run.ranks());
  const std::vector<std::string> counts = each(ranks, [](std::int64_t count) { return std::to_string(count); });
  parts.push_back(fmt::format("{} rank{}", either(counts), ranks == std::set<std::int64_t>{1} ? "" : "s"));
  const bool several_hosts = attribute(records, "hostlist").find(',') != std::string::npos;
  const bool has_topology = !attribute(records, "topology").empty();  // older records lack it
  const std::pair<const char*, const char*> told[] = {{several_hosts && has_topology ? "topology" : "hostlist", "on "},
                                                      {"launchdate", "started "},
                                                      {"git_commit", "commit "},
                                                      {"compiler", ""},
                                                      {"chorale_version", "chorale "}};
  for (const auto& [name, before] : told)
    if (const std::string value = attribute(records, name); !value.empty())
      parts.push_back(before + (std::string(name) == "launchdate" ? value.substr(0, value.find(',')) : value));
  return join(parts, " · ");
}

// A warning about runs that did not complete.
std::string unfinished(const RecordSet& records) {
  std::vector<std::string> words;
  for (const RecordedRun& run : records.runs)
    if (run.status != "ok" && !run.status.empty())
      words.push_back(fmt::format("{} ({}) is marked {}", run.label, run.id, run.status));
  if (words.empty()) return "";
  constexpr std::size_t most = 5;
  const std::size_t more = words.size() > most ? words.size() - most : 0;
  words.resize(words.size() - more);
  return html_paragraph(
      join(words, "; ") + (more ? fmt::format("; and {} more", more) : "") +
          ": the page shows the data up to its last flush. A run marked running has not ended yet, or was killed.",
      "warning");
}

std::string disturbed(const RecordSet& records) {
  const std::string disturbance = disturbance_of(records);
  return disturbance.empty() ? "" : html_paragraph(disturbance + ".", "warning");
}

// Returns the SVG with a different CSS class: "roomy" for wide windows, "narrow" for phones. HTML implies the XML namespace.
std::string for_windows(std::string svg, const std::string& kind) {
  constexpr std::string_view name_space = " xmlns=\"http://www.w3.org/2000/svg\"";
  if (const auto at = svg.find(name_space); at != std::string::npos) svg.erase(at, name_space.size());
  constexpr std::string_view start = "<svg class=\"";
  return svg.insert(svg.find(start) + start.size(), kind + " ");
}

// Whether a drawing is alone in its row. On a wide page, a drawing that is alone takes the full width instead of half. With
// an odd number of drawings, the first is alone, because it is often an overview.
bool is_alone(const Figure& figure, std::size_t chart) {
  return figure.wide || (chart == 0 && figure.charts.size() % 2 == 1);
}

// Converts the picture to a link that needs no network and no script.
std::string link_to(const std::string& svg) {
  std::string link = "data:image/svg+xml;charset=utf-8,";
  for (const char c : svg)
    if (std::string_view("%#<>&':\n").find(c) == std::string_view::npos)
      link += c;
    else
      link += fmt::format("%{:02X}", c);
  return link;
}

std::string figure_of(const Drawing& drawing, const std::string& file, bool alone, Looks& looks) {
  const std::string roomy = drawing.at(looks, alone ? whole_width : half_width);
  return fmt::format(
      "<figure{}><figcaption><a class=\"save\" download=\"{}\" href='{}'>save SVG</a>{}</figcaption>\n{}{}</figure>\n",
      alone ? " class=\"whole\"" : "", file, link_to(as_file(roomy)), escape_xml(drawing.caption),
      for_windows(roomy, "roomy"), for_windows(drawing.at(looks, narrow_width), "narrow"));
}

std::string section_of(const FigureRow& row, const Figure& figure, const std::string& finding, Looks& looks) {
  std::string html = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}", row.name, escape_xml(row.title),
                                 finding.empty() ? "" : html_paragraph(finding));
  const std::string numbers = figure.numbers.html();
  if (figure.numbers_first) html += scrolled(numbers);
  if (!figure.charts.empty()) html += "<div class=\"charts\">\n";
  for (std::size_t i = 0; i < figure.charts.size(); ++i)
    html += figure_of(figure.charts[i], fmt::format("{}-{}.svg", row.name, i + 1), is_alone(figure, i), looks);
  if (!figure.charts.empty()) html += "</div>\n";
  if (!figure.numbers_first)
    html +=
        folded(fmt::format("The numbers ({} row{})", figure.numbers.rows(), figure.numbers.rows() == 1 ? "" : "s"), numbers);
  return html + "</section>\n";
}

std::string settings_section(const RecordSet& records) {
  TextTable runs({"run", "label", "status", "command"}), common({"setting", "value"});
  for (const RecordedRun& run : records.runs) {
    const bool has_launcher = run.ranks() > 1 && run.command != another_program && !run.launched();
    const std::string launcher = has_launcher ? fmt::format("mpirun -n {} ", run.ranks()) : "";
    const std::string command = run.attribute("cmdline");
    runs.add({run.id, run.label, run.status, command.empty() ? "" : launcher + command});
  }
  for (const auto& [key, value] : records.common_settings()) common.add({key, value});
  std::string html = "<section>\n<h2>What was run</h2>\n" + folded(fmt::format("The runs ({})", runs.rows()), runs.html());
  if (common.rows()) html += folded(fmt::format("Settings that all runs share ({})", common.rows()), common.html());
  return html + "</section>\n";
}

}  // namespace

std::string page_of(const RecordSet& records) {
  std::string sections, shows;
  std::vector<std::string> left_out;
  Looks looks;
  for (const FigureRow& row : all_figures()) {
    const std::optional<Figure> figure = row.make(records);
    if (figure) {
      sections += section_of(row, *figure, shows.empty() ? "" : figure->finding, looks);
      if (shows.empty()) shows = figure->finding;  // shown at the top of the page, not in the figure's section
    } else {
      left_out.push_back(fmt::format("{} (needs {})", row.name, row.wants));
    }
  }
  if (shows.empty()) shows = "There is nothing to draw: no run has recorded a step or a measurement yet.";
  const std::string title = title_of(records);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}<main>\n",
      escape_xml(title), page_style, chart_styles(), patterns());
  html +=
      fmt::format("<header>\n<h1>{}</h1>\n{}{}{}</header>\n", escape_xml(title), html_paragraph(facts_of(records), "facts"),
                  html_paragraph(shows, "shows"), disturbed(records) + unfinished(records));
  html += sections + settings_section(records);
  if (!left_out.empty()) html += html_paragraph("Left out for lack of data: " + join(left_out, "; ") + ".", "left-out");
  return html + "</main>\n</body>\n</html>\n";
}

std::vector<FigureFile> figure_files_of(const RecordSet& records) {
  std::vector<FigureFile> pictures;
  Looks looks;
  for (const FigureRow& row : all_figures())
    if (const std::optional<Figure> figure = row.make(records))
      for (std::size_t i = 0; i < figure->charts.size(); ++i)
        pictures.push_back({fmt::format("{}-{}.svg", row.name, i + 1),
                            as_file(figure->charts[i].at(looks, figure->wide ? whole_width : half_width))});
  return pictures;
}

}  // namespace chorale::report
