// Writes and parses layout strings. An error names the invalid part of the string.
//
//   tp2.pp2.v2.sp of 8 ranks   →   dp2.tp2.pp2.sp.v2.interleaved
//   tp2.tp-dp of 4 ranks       →   dp2.tp2.tp-dp, where tp is the outer axis
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "parallel/layout/layout.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t most = 1'000'000;  // the largest axis size; Layout::along() checks products of sizes

// A part of a layout string that has a number: an axis, z or v.
struct Numbered {
  std::string letters;
  std::int64_t lowest, highest;
};

std::vector<Numbered> numbered_parts(const AxisTable& axes) {
  std::vector<Numbered> all;
  for (const AxisRow& axis : axes)
    if (!axis.follows()) all.push_back({axis.name, 1, most});
  all.push_back({"z", 0, 3});
  all.push_back({"v", 1, most});
  return all;
}

struct WordPart {
  std::string text, letters, digits;
};

WordPart part_of(const std::string& text) {
  const std::size_t letters = text.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  return {text, text.substr(0, letters), text.substr(letters)};
}

// Translates other notations, such as "dp=2,tp=2", "DP2 x TP2" or "dp2,tp2", into the layout string that was probably meant.
// Returns "" if the notation is not known.
std::string in_our_words(const AxisTable& axes, const std::string& word) {
  std::string tidy;
  for (const char c : lower(word))
    if (std::strchr(".,+*x/;_ ", c))
      tidy += tidy.ends_with('.') ? "" : ".";
    else if (c != '=' && c != ':')
      tidy += c;
  if (tidy == "ddp" || tidy == "fsdp") return tidy == "ddp" ? "z0" : "z3";  // ddp and fsdp mean that dp has all ranks
  if (tidy == word) return "";
  try {
    parse_layout(tidy, 0, axes);
    return tidy;
  } catch (const Error&) {
    return "";
  }
}

[[noreturn]] void refuse_part(const AxisTable& axes, const std::string& word, const WordPart& part,
                              const std::string& what) {
  std::vector<std::string> right;
  std::string sizes;  // "dpN, tpN, ppN"
  for (const AxisRow& axis : axes)
    if (!axis.follows()) sizes += fmt::format("{}N, ", axis.name);
  for (const Numbered& n : numbered_parts(axes)) right.push_back(n.letters + (part.digits.empty() ? "2" : part.digits));
  for (const std::string& name : schedule_names()) right.push_back(name);
  right.insert(right.end(), {"sp", "hpz"});
  const std::string own = in_our_words(axes, word), near = own.empty() ? nearest(part.text, right) : own;
  usage_error(fmt::format("\"{}\" {}", part.text, what), fmt::format("the layout given is \"{}\"", word),
              (near.empty() || near == part.text ? "" : fmt::format("did you mean {}? ", near)) + "a layout is made of " +
                  sizes + "z0 to z3, hpz, sp, vN, an order of axes (tp-dp) and a schedule (" + join(schedule_names(), ", ") +
                  "), separated by dots");
}

std::int64_t number_of(const AxisTable& axes, const std::string& word, const WordPart& part, const Numbered& kind) {
  std::int64_t value = -1;
  const auto read = std::from_chars(part.digits.data(), part.digits.data() + part.digits.size(), value);
  if (part.digits.empty()) refuse_part(axes, word, part, "lacks its number");
  if (read.ec != std::errc() || value < kind.lowest || value > kind.highest)
    refuse_part(axes, word, part,
                fmt::format("is out of range: {} takes {} to {}", kind.letters, kind.lowest, kind.highest));
  return value;
}

// Stores one part in the layout. Returns the part's kind, so that the caller can find repeated parts.
std::string take(const std::string& word, const WordPart& part, Layout& layout) {
  const AxisTable& axes = *layout.axes;
  if (const PipelineAlgorithm* const schedule = find_pipeline_schedule(part.text)) {
    layout.schedule = schedule;
    return "schedule";
  }
  if (part.text == "sp") {
    layout.sequence = true;
    return "sp";
  }
  if (part.text == "hpz") {
    layout.hpz = true;
    return "hpz";
  }
  const std::size_t hyphen = part.text.find('-');
  if (hyphen != std::string::npos && std::ranges::count(axes, part.text.substr(0, hyphen), &AxisRow::name)) {
    layout.order = axes.parse_order(part.text, '-');
    return "order";
  }
  for (const Numbered& kind : numbered_parts(axes)) {
    if (part.letters != kind.letters) continue;
    const std::int64_t value = number_of(axes, word, part, kind);
    if (part.letters == "z")
      layout.zero = static_cast<int>(value);
    else if (part.letters == "v")
      layout.chunks = value;
    else
      layout[part.letters] = value;
    return part.letters;
  }
  refuse_part(axes, word, part, "is not a part of a layout");
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const PipelineAlgorithm& row : all_pipeline_schedules()) names.emplace_back(row.name);
  return names;
}

PipelineShape pipeline_of(const Layout& layout, std::int64_t micro_batches) {
  return {layout.stages(), micro_batches, layout.chunks, layout.schedule->placement};
}

std::string to_string(const Layout& layout) {
  const Layout plain;
  std::string word;
  for (std::size_t row = 0; row < layout.axes->size(); ++row) {
    const AxisRow& axis = (*layout.axes)[row];
    if (!axis.follows() && (axis.takes_rest || layout.sizes[row] != 1))
      word += fmt::format("{}{}{}", word.empty() ? "" : ".", axis.name, layout.sizes[row]);
  }
  if (layout.zero != plain.zero) word += fmt::format(".z{}", layout.zero);
  if (layout.hpz) word += ".hpz";
  if (layout.sequence) word += ".sp";
  if (layout.chunks != plain.chunks || layout.schedule->least_chunks > 1) word += fmt::format(".v{}", layout.chunks);
  // The usual schedule depends on the number of chunks, so a word with several chunks always names its schedule.
  if (layout.schedule != plain.schedule || layout.chunks != plain.chunks) word += fmt::format(".{}", layout.schedule->name);
  if (!layout.has_usual_order()) word += "." + join(layout.outwards_in(), "-");
  return word;
}

LayoutWord read_layout_word(const std::string& word, const AxisTable& axes) {
  LayoutWord read{.layout = {.axes = &axes}, .named = {}};
  Layout& layout = read.layout;
  for (std::size_t row = 0; row < axes.size(); ++row) layout.sizes[row] = axes[row].unnamed_size();
  for (const std::string& text : split(word, '.')) {
    const WordPart part = part_of(text);
    if (text.empty()) refuse_part(axes, word, part, "is empty: there is nothing between two dots");
    const std::string what = take(word, part, layout);
    if (!read.named.insert(what).second)
      refuse_part(axes, word, part, what == "schedule" || what == "order" ? "is a second " + what : "is given twice");
  }
  if (!read.named.contains("schedule")) layout.schedule = &usual_schedule(layout.chunks);
  if (!read.named.contains("v")) layout.chunks = layout.schedule->least_chunks;
  return read;
}

Layout parse_layout(const std::string& word, std::int64_t world, const AxisTable& axes) {
  Layout layout = read_layout_word(word, axes).layout;
  return world > 0 ? inferred(std::move(layout), world) : layout;
}

}  // namespace chorale
