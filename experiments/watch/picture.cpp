#include "experiments/watch/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/each.hpp"
#include "experiments/common/scale.hpp"
#include "src/base/text.hpp"

namespace chorale::watch {
namespace {

using train::TrainRow;

constexpr std::size_t newest_steps = 20;
constexpr int chart_rows = 6, label_columns = 9, bar_columns = 30, most_columns = 120;

struct Span {
  double low = 0, high = 0;
};

Span span_of(const std::vector<double>& values) {
  Span span{INFINITY, -INFINITY};
  for (const double value : values)
    if (std::isfinite(value)) span = {std::min(span.low, value), std::max(span.high, value)};
  return span;
}

// The mean over the newest steps. Ignores unknown values.
double newest(const Metrics& metrics, double TrainRow::*what) {
  double sum = 0;
  int count = 0;
  const std::size_t first = metrics.steps.size() - std::min(metrics.steps.size(), newest_steps);
  for (std::size_t i = first; i < metrics.steps.size(); ++i)
    if (const double value = metrics.steps[i].*what; std::isfinite(value)) {
      sum += value;
      ++count;
    }
  return count ? sum / count : 0;
}

// Estimates the remaining time from the times at which steps ended. Step durations are not used, because evaluations and
// checkpoints take time, too.
double seconds_to_go(const Metrics& metrics) {
  const std::size_t count = std::min(metrics.steps.size(), newest_steps);
  const TrainRow &last = metrics.steps.back(), &first = metrics.steps[metrics.steps.size() - count];
  const double passed =
      last.step > first.step ? (last.time - first.time) / static_cast<double>(last.step - first.step) : last.step_time;
  return passed * static_cast<double>(metrics.last_step - last.step);
}

std::string progress(const Metrics& metrics) {
  if (metrics.proves())
    return fmt::format("{} layout{} compared with one rank", metrics.proofs, metrics.proofs == 1 ? "" : "s");
  if (metrics.steps.empty()) return metrics.ended() ? "no training steps" : "no training steps yet";
  const TrainRow& last = metrics.steps.back();
  std::string text = fmt::format("step {}", last.step);
  if (metrics.last_step > 0) text += fmt::format("/{}  {} %", metrics.last_step, 100 * last.step / metrics.last_step);
  text += "  " + human_seconds(last.time);
  if (!metrics.ended() && last.step < metrics.last_step)
    text += fmt::format(", {} to go", human_seconds(seconds_to_go(metrics)));
  return text;
}

// Returns a message that the run has written nothing for a while. An evaluation or a checkpoint takes longer than a step.
// Silence is therefore reported only after ten times the step time, and after at least ten seconds.
std::string silence(const Metrics& metrics, const View& view) {
  const double usual = metrics.steps.empty() ? 0 : newest(metrics, &TrainRow::step_time);
  if (metrics.ended() || view.silent_seconds < std::max(10.0, 10 * usual)) return "";
  return fmt::format("nothing new for {}: killed, or in a long {}", human_seconds(view.silent_seconds),
                     metrics.proves() ? "proof" : "step, evaluation or save");
}

std::string held_out(const Metrics& metrics) {
  return metrics.evaluation
             ? fmt::format(", held out {:.4f} after step {}", metrics.evaluation->loss, metrics.evaluation->step)
             : "";
}

std::string speed(const Metrics& metrics) {
  const auto percent = [](double share) { return quantity(share, Unit::percent, 2); };
  const double dropped = metrics.steps.empty() ? NAN : metrics.steps.back().dropped_share;
  return fmt::format("{:.0f} tokens/s, MFU {}{}", newest(metrics, &TrainRow::tokens_per_s),
                     percent(newest(metrics, &TrainRow::mfu)),
                     std::isfinite(dropped) ? ", dropped " + percent(dropped) : "");
}

std::string repeated(const char* letter, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += letter;
  return text;
}

std::string shares(const Metrics& metrics, bool bar) {
  const double communication = newest(metrics, &TrainRow::comm_share), bubble = newest(metrics, &TrainRow::bubble_share);
  const double computing = std::max(0.0, 1 - communication - bubble);
  const auto end = [](double share) { return static_cast<int>(std::lround(bar_columns * std::clamp(share, 0.0, 1.0))); };
  const int first = end(computing), second = std::max(first, end(computing + communication));
  return fmt::format(
      "{}computing {:.0f} %, communication {:.0f} %, bubble {:.0f} %",
      bar ? repeated("█", first) + repeated("▒", second - first) + repeated("░", bar_columns - second) + "  " : "",
      100 * computing, 100 * communication, 100 * bubble);
}

std::string chart(const Metrics& metrics, int columns) {
  const std::vector<double> losses = each(metrics.steps, &TrainRow::loss);
  const Span span = span_of(losses);
  if (!(span.low <= span.high)) return "";
  const std::vector<std::string> rows = braille(losses, columns - label_columns, chart_rows);
  std::string text = "\n";
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::string label = row == 0                 ? fmt::format("{:.4f}", span.high)
                              : row + 1 == rows.size() ? fmt::format("{:.4f}", span.low)
                                                       : "";
    text += fmt::format("{:>{}} {}\n", label, label_columns - 1, rows[row]);
  }
  return text + "\n";
}

}  // namespace

std::vector<std::string> braille(const std::vector<double>& values, int columns, int rows) {
  // bits[column][row]: the bit that a dot sets in the Braille character of its cell. Row 0 is the top.
  constexpr int bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  const int dots_across = 2 * std::max(columns, 1), dots_down = 4 * rows;
  const Span span = span_of(values);
  std::vector<int> cells(static_cast<std::size_t>(dots_across / 2 * rows), 0);
  int before = -1;  // the row of the dot to the left, to which steep lines are joined; -1 if there is none
  for (int x = 0; x < dots_across && !values.empty(); ++x) {
    // If there are many values, a dot is the mean of several values; if there are few, each value spans several dots.
    const auto count = static_cast<std::int64_t>(values.size());
    const std::int64_t first = x * count / dots_across, last = std::max(first + 1, (x + 1) * count / dots_across);
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) sum += values[static_cast<std::size_t>(i)];
    const double mean = sum / static_cast<double>(last - first);
    if (!std::isfinite(mean)) {
      before = -1;
      continue;
    }
    const double height = span.high > span.low ? (span.high - mean) / (span.high - span.low) : 0.5;
    const int y = static_cast<int>(std::lround(height * (dots_down - 1)));
    const int from = before < 0 ? y : before + (y > before) - (y < before);
    for (int dot = std::min(from, y); dot <= std::max(from, y); ++dot)
      cells[static_cast<std::size_t>(dot / 4 * (dots_across / 2) + x / 2)] |= bits[x % 2][dot % 4];
    before = y;
  }
  std::vector<std::string> lines(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int code = 0x2800 + cells[i];  // three bytes of UTF-8
    std::string& text = lines[i / static_cast<std::size_t>(dots_across / 2)];
    for (const int byte : {0xE0 | code >> 12, 0x80 | (code >> 6 & 0x3F), 0x80 | (code & 0x3F)})
      text += static_cast<char>(byte);
  }
  return lines;
}

std::string picture(const Metrics& metrics, const View& view) {
  const int columns = std::clamp(view.columns - 1, label_columns + 10, most_columns);
  std::string text = metrics.run_id.empty() ? "a run" : escape_control(metrics.run_id);
  if (metrics.ranks > 0) text += fmt::format("  {} rank{}", metrics.ranks, metrics.ranks > 1 ? "s" : "");
  text += fmt::format("  {}\n{}\n", metrics.status.empty() ? "starting" : escape_control(metrics.status), progress(metrics));
  if (!metrics.steps.empty()) {
    const TrainRow& last = metrics.steps.back();
    text += chart(metrics, columns);
    text += fmt::format("{:<{}}{:.4f}{}\n", "loss", label_columns, last.loss, held_out(metrics));
    text += fmt::format("{:<{}}{}\n", "speed", label_columns, speed(metrics));
    text += fmt::format("{:<{}}{}\n", "time", label_columns, shares(metrics, columns >= 100));
    text += fmt::format("{:<{}}{} on the fullest rank\n", "memory", label_columns, human_bytes(last.peak_bytes));
  }
  if (const std::string word = silence(metrics, view); !word.empty()) text += word + "\n";
  std::string cut;
  for (const std::string& row : split(text.substr(0, text.size() - 1), '\n'))
    cut += first_columns(row, view.columns - 1) + "\n";
  return cut;
}

std::string line(const Metrics& metrics, const View& view) {
  std::string text = progress(metrics);
  if (!metrics.steps.empty())
    text += fmt::format("  loss {:.4f}{}  {}  {}  {}", metrics.steps.back().loss, held_out(metrics), speed(metrics),
                        shares(metrics, false), human_bytes(metrics.steps.back().peak_bytes));
  if (const std::string word = silence(metrics, view); !word.empty()) text += "  " + word;
  return text + "\n";
}

}  // namespace chorale::watch
