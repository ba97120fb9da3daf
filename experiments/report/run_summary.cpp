#include "experiments/report/run_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/common/scale.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/heading.hpp"
#include "experiments/report/launch_events.hpp"
#include "experiments/report/launch_summary.hpp"
#include "experiments/report/record_tables.hpp"
#include "experiments/report/suite_summary.hpp"
#include "experiments/report/training.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_lines = 40, most_columns = 80;

std::size_t lines_in(const std::string& text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

// Returns the first lines of a text, and the number of lines that are left out.
std::string first_lines(const std::string& text, std::size_t most) {
  const std::size_t all = lines_in(text);
  if (all <= most) return text;
  const std::size_t kept = most > 0 ? most - 1 : 0;
  const std::vector<std::string> lines = split(text, '\n');
  return join({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(kept)}, "\n") +
         fmt::format("\n… and {} lines more\n", all - kept);
}

double known_sum_of(const std::vector<double>& values) { return values.empty() ? absent : sum_of(values); }

double most_of(const std::vector<double>& values) { return values.empty() ? absent : std::ranges::max(values); }

// Returns the total bytes of all ranks. Returns `absent` (NaN) if any rank used a library that does not count its bytes.
double counted(const std::vector<double>& bytes) {
  return std::ranges::any_of(bytes, [](double b) { return b < 0; }) ? absent : known_sum_of(bytes);
}

// The layout and model of the run.
std::string setup_of(const RecordedRun& run, std::size_t columns) {
  const RecordGroup root = run.root();
  const auto word = [&](const char* name) { return join(root.words(name), ""); };
  const auto set = [&](const char* name) { return run.setting(name); };
  std::string place = run.launched() ? layouts_in_words(run)
                                     : fmt::format("{} on {} rank{}", run.layout.empty() ? run.label : run.layout,
                                                   run.ranks(), run.ranks() == 1 ? "" : "s");
  if (run.simulated())
    place += ", simulated on " + word("simulated_on");
  else if (run.ranks() > 1 && !word("backends").empty())
    place += ", backend " + word("backends");
  if (const std::string device = word("device"); !device.empty()) place += ", on " + device;
  std::string out = fact("layout", place, columns, 2);
  if (!set("num-layers").empty()) {
    const std::string experts = set("num-experts");
    out += fact("model",
                fmt::format("{} layers of width {}{}, {}, {} sequences of {} tokens a step", set("num-layers"),
                            set("hidden-size"), experts.empty() || experts == "0" ? "" : ", " + experts + " experts",
                            set("dtype"), set("global-batch-size"), set("seq-length")),
                columns, 2);
  }
  return out;
}

std::string steps_of(const RecordedRun& run, const std::vector<double>& steps) {
  const std::string planned = run.attribute("train_iters"), load = run.setting("load");
  std::string text = steps.empty() ? "none finished" : fmt::format("{:.0f} to {:.0f}", steps.front(), steps.back());
  if (!planned.empty()) text += " of " + planned;
  return load.empty() ? text : text + ", resumed from " + load;
}

std::string loss_of(const RecordedRun& run, const std::vector<double>& losses) {
  std::string text = fmt::format("{:.4f} in the first step, {:.4f} in the last", losses.front(), losses.back());
  if (const double held_out = held_out_loss(run); std::isfinite(held_out))
    text += fmt::format("; held out {:.4f}, perplexity {:.4g}", held_out, std::exp(held_out));
  return text;
}

std::string speed_of(const RecordedRun& run) {
  const double left_out = steps_of_warm_up(run);
  std::string text = quantity(steady_median(run, "tokens") / step_seconds(run), Unit::plain, 4) + " tokens/s, " +
                     quantity(step_seconds(run), Unit::seconds) + " a step";
  if (const double mfu = steady_median(run, "mfu"); std::isfinite(mfu)) text += ", MFU " + quantity(mfu, Unit::percent, 2);
  if (left_out == 1) text += "; medians without the first step";
  if (left_out > 1) text += fmt::format("; medians without the first {:.0f} steps", left_out);
  if (changed_layout(run)) text += ", over all layouts";
  return text;
}

// The parts of a step as percentages, averaged over the ranks. Cumulative sums are rounded, so that the integer percentages
// add up to 100. Parts of 0 % are left out.
std::string parts_of(const RecordedRun& run) {
  const StepParts parts = step_parts({&run});
  const double all = step_seconds(run) * static_cast<double>(parts.seconds.size());
  std::vector<std::string> words;
  double seconds = 0;
  long told = 0;  // sum of the percentages so far
  for (std::size_t part = 0; part < StepParts::names().size(); ++part) {
    for (const auto& rank : parts.seconds) seconds += rank[part];
    const long percent = std::lround(100 * seconds / all) - told;
    if (percent > 0) words.push_back(fmt::format("{} {} %", StepParts::names()[part], percent));
    told += percent;
  }
  return join(words, ", ");
}

// The last and the largest gradient norm. The table of steps shows only a few steps, and can thus omit a spike.
std::string gradient_of(const std::vector<double>& steps, const std::vector<double>& norms) {
  std::size_t most = norms.size();
  for (std::size_t i = 0; i < norms.size(); ++i)
    if (std::isfinite(norms[i]) && (most == norms.size() || norms[i] > norms[most])) most = i;
  if (most == norms.size()) return "";
  return fmt::format("norm {:.3f} in the last step, at most {:.3f}, in step {:.0f}", norms.back(), norms[most], steps[most]);
}

std::string saves_of(const RecordGroup& saves) {
  const std::vector<double> steps = saves.numbers("step"), bytes = saves.numbers("bytes"), waits = saves.numbers("exposed");
  return fmt::format("{}, the newest of step {:.0f}: {}, training waited {}", steps.size(), steps.back(),
                     quantity(bytes.back(), Unit::bytes), quantity(waits.back(), Unit::seconds));
}

// The run's results, one fact per line.
std::string results_of(const RecordedRun& run, std::size_t columns) {
  const RecordGroup train = run.group("train");
  const std::vector<double> steps = train.numbers("step"), losses = train.numbers("loss");
  std::string out = run.simulated() ? "" : fact("steps", steps_of(run, steps), columns, 2);
  if (steps.empty()) return out;
  if (!run.simulated() && !losses.empty()) out += fact("loss", loss_of(run, losses), columns);
  if (const std::string gradient = gradient_of(steps, train.numbers("grad_norm")); !gradient.empty())
    out += fact("gradient", gradient, columns);
  out += fact("speed", speed_of(run), columns);
  if (run.launched()) out += fact("memory", quantity(largest_peak(run), Unit::bytes, 4) + " on the fullest rank", columns);
  if (run.has("phases")) out += fact("a step", parts_of(run), columns);
  if (const double dropped = dropped_share(run); std::isfinite(dropped))
    out += fact("experts", quantity(dropped, Unit::percent) + " of their choices were dropped", columns);
  if (const double imbalance = attention_imbalance(run); std::isfinite(imbalance))
    out += fact("attention", fmt::format("the busiest context rank computes {:.2f} times the mean", imbalance), columns);
  if (run.has("saves") && !run.group("saves").numbers("step").empty())
    out += fact("checkpoints", saves_of(run.group("saves")), columns);
  const std::vector<std::string> skipped = train.words("skipped");
  if (const auto count = std::ranges::count(skipped, "yes"))
    out += fact("skipped", fmt::format("{} step{}", count, count > 1 ? "s" : ""), columns);
  return out + restarts_of(run, columns);
}

// Time, memory and bytes, as planned and as measured. Rows without a value are left out. Each start of a launch has its own
// plan, which is in the record of the start.
std::string predictions_of(const RecordedRun& run, std::size_t columns) {
  if (run.launched()) return "";
  TextTable table({"", "predicted", "measured", "measured / predicted"});
  const auto add = [&](const char* name, double predicted, double measured, Unit unit) {
    if (!std::isfinite(predicted) && !std::isfinite(measured)) return;
    const std::string ratio = predicted > 0 ? fmt::format("{:.3f}", measured / predicted) : "-";
    table.add({name, quantity(predicted, unit, 4), quantity(measured, unit, 4), std::isfinite(measured) ? ratio : "-"});
  };
  const RecordGroup memory = run.group("memory"), traffic = run.group("traffic");
  const bool simulated = run.simulated();
  add("time of a step", simulated ? step_seconds(run) : predicted_step_time(run), simulated ? absent : step_seconds(run),
      Unit::seconds);
  add("peak memory/rank", simulated ? largest_peak(run) : most_of(memory.numbers("planned_total")),
      simulated ? absent : largest_peak(run), Unit::bytes);
  if (simulated)
    add("bytes sent in a step", bytes_per_step(run), absent, Unit::bytes);
  else
    add("bytes sent, all ranks", known_sum_of(traffic.numbers("bytes_predicted")),
        counted(traffic.numbers("bytes_measured")), Unit::bytes);
  add("bytes read from the slow tier", known_sum_of(memory.numbers("tier_read_predicted")),
      known_sum_of(memory.numbers("tier_read")), Unit::bytes);
  add("bytes written to it", known_sum_of(memory.numbers("tier_written_predicted")),
      known_sum_of(memory.numbers("tier_written")), Unit::bytes);
  std::string out = table.rows() > 0 ? "\n" + table.print("text", columns) : "";
  if (!simulated && !run.has("traffic"))
    out += paragraph("", "The bytes sent are unknown: they are counted when a run ends.", columns);
  return out;
}

// The first step, the last step, and steps between them at equal distances.
std::string some_steps(const RecordedRun& run, std::size_t most, std::size_t columns) {
  const RecordGroup train = run.group("train");
  const std::vector<double> steps = train.numbers("step");
  if (most < 2 || steps.size() < 2 || run.simulated()) return "";
  TextTable table({"step", "loss", "|gradient|", "learning rate", "tokens/s"});
  std::vector<std::size_t> last;  // the newest row of each step: a step that a death has undone is in the table twice
  for (std::size_t row = 0; row < steps.size(); ++row) {
    while (!last.empty() && steps[last.back()] >= steps[row]) last.pop_back();
    last.push_back(row);
  }
  const std::size_t rows = std::min(most, last.size());
  const auto losses = train.numbers("loss"), norms = train.numbers("grad_norm"), rates = train.numbers("lr"),
             speeds = train.numbers("tokens_per_s");
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = last[row * (last.size() - 1) / (rows - 1)];
    table.add({fmt::format("{:.0f}", steps[at]), fmt::format("{:.4f}", losses[at]), fmt::format("{:.3f}", norms[at]),
               fmt::format("{:.2e}", rates[at]), quantity(speeds[at], Unit::plain, 4)});
  }
  return "\n" + table.print("text", columns);
}

constexpr const char* not_compared = "not compared";  // the verdict of a case that prove has not reached

// The main table of a record that is not from training.
struct Answer {
  const char *group, *columns;
};
constexpr Answer answers[] = {{"cases", "layout,backend,algorithm,variation,verdict"},
                              {"kernels", "name,shape,calls,time"},
                              {"ranks", "host,cpuset,threads,load,others"}};

std::string answer_in(const RecordedRun& run, const Answer& answer, std::size_t most, std::size_t columns) {
  const RecordGroup group = run.group(answer.group);
  std::vector<std::string> names;
  for (const std::string& name : split(answer.columns, ','))
    if (group.has(name)) names.push_back(name);
  if (names.empty()) return "";
  TextTable table(names);
  const std::size_t all = group.words(names[0]).size(), shown = std::min(all, most);
  std::vector<std::size_t> rows(all);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const std::vector<std::string> verdicts = group.words("verdict");
  const auto place = [&](std::size_t row) {  // first the cases that differ, then the equal cases
    return row >= verdicts.size() || verdicts[row] == not_compared ? 2 : verdicts[row] == "equal" ? 1 : 0;
  };
  if (!verdicts.empty()) std::ranges::stable_sort(rows, {}, place);
  for (std::size_t row = 0; row < shown; ++row) {
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(shortened(group.words(name).at(rows[row])));
    table.add(cells);
  }
  std::string out = "\n";
  if (!verdicts.empty()) {
    const auto equal = std::ranges::count(verdicts, "equal"), left = std::ranges::count(verdicts, not_compared);
    out += left > 0 ? fmt::format("{} of {} cases were compared; {} are equal to one rank, bit for bit\n",
                                  std::ssize(verdicts) - left, all, equal)
                    : fmt::format("{} of {} cases are equal to one rank, bit for bit\n", equal, all);
  }
  return out + table.print("text", columns) + (shown < all ? fmt::format("… and {} rows more\n", all - shown) : "");
}

}  // namespace

std::string run_summary(const std::string& file, std::int64_t warm_up, std::size_t columns) {
  columns = columns == 0 ? most_columns : std::min(columns, most_columns);
  const RecordSet records = read_records({file}, warm_up);
  const RecordedRun& run = records.runs.at(0);
  const Reader& record = run.source->reader;
  std::string out = escape_control(file) + "\n" + trouble_of(file, record, columns) + "\n" + facts_of(record, columns) +
                    disturbance_in(records, columns);
  const std::string footer = "\n" + (run.launched() ? reports_of_starts(file, columns) : "") + footer_of(file, columns);
  const auto left = [&] { return most_lines - std::min(most_lines, lines_in(out) + lines_in(footer)); };
  if (run.has("train")) {
    out += setup_of(run, columns) + "\n" + results_of(run, columns) + predictions_of(run, columns);
    constexpr std::size_t around = 2, most_rows = 8, most_events = 12;  // around: lines above the rows
    const std::size_t of_steps = around + 3;                            // lines that the events leave for steps
    out += newest_events(run, std::min(most_events, left() - std::min(left(), of_steps)), columns);
    return out + some_steps(run, std::min(most_rows, left() - std::min(left(), around)), columns) + footer;
  }
  if (run.has("series")) return out + first_lines(answer_of(records, columns), left()) + footer;
  for (const Answer& answer : answers)
    if (run.has(answer.group)) {
      out += first_lines(answer_in(run, answer, 20, columns), left());
      break;
    }
  return out + footer;
}

}  // namespace chorale::report
