#include "src/base/machine_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"
#include "src/base/toml.hpp"
#include "src/base/toml_fields.hpp"

namespace chorale {
namespace {

constexpr const char* schema = "chorale machine";
constexpr int version = 1;
constexpr const char* how_to_mend =
    "correct the line (docs/machine_file.md), or move the file away and measure anew: chorale tune --calibrate";
constexpr double most_seconds = 3600, most_rate = 1e18, most_count = 1e9;

Level level_of(TomlFields fields) {
  Level level{.backend = fields.text("backend"), .span = fields.text("span", "host")};
  if (level.span != "host" && level.span != "network")
    fields.refuse("span", fields.find("span"), fmt::format("is \"{}\", but must be host or network", level.span));
  level.ranks = static_cast<int>(fields.number("ranks", 1, most_count));
  level.hosts = static_cast<int>(fields.number("hosts", level.span == "network" ? 2 : 1, most_count, 1));
  level.shared_cores = fields.flag("shared_cores");
  level.measured = fields.text("measured", "");
  level.busy = fields.flag("busy");
  level.barrier = fields.number("beat", 0, most_seconds, -1);
  level.staged_bytes = static_cast<std::int64_t>(fields.number("staged_bytes", 0, most_rate, -1));
  level.rows = static_cast<int>(fields.number("rows", 0, most_count, 0));
  level.error = fields.number("error", 0, 100, 0);
  level.error_95 = fields.number("error_95", 0, 100, 0);
  for (const char* needed : {"latency", level.span == "network" ? "link" : "cross"}) fields.find(needed);
  std::optional<TomlFields> spread = fields.table("spread");
  for (const PriceKey& key : price_keys()) {
    const bool is_rate = std::string_view(key.unit) == "B/s";
    if (fields.has(key.name))
      level.prices[key.name] = fields.numbers(key.name, key.count, is_rate ? 1 : 0,
                                              is_rate                             ? most_rate
                                              : std::string_view(key.unit) == "s" ? most_seconds
                                                                                  : most_rate);
    if (spread && spread->has(key.name)) level.spread[key.name] = spread->numbers(key.name, key.count, 0, most_rate);
  }
  std::vector<std::string> prices;
  for (const PriceKey& key : price_keys()) prices.emplace_back(key.name);
  if (spread) spread->finish(prices);
  fields.finish(prices);
  return level;
}

std::string list(const std::vector<double>& values) {
  std::vector<std::string> words;
  for (const double value : values)
    words.push_back(value == std::floor(value) && value < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value));
  // In TOML, a number with an exponent or a decimal point is a float, and any other number is an integer. Machine files
  // accept floats and integers as numbers.
  return words.size() == 1 ? words[0] : fmt::format("[{}]", join(words, ", "));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::string calibrated(const std::string& file, const std::string& measured, int ranks, double error, bool busy,
                       const char* which) {
  return fmt::format("{}, calibrated {} with {} rank{}{}, {} error {:.0f} %", file.empty() ? "the machine file" : file,
                     measured.empty() ? "at an unknown time" : measured.substr(0, std::size("2026-11-22") - 1), ranks,
                     ranks == 1 ? "" : "s", busy ? " beside other programs" : "", which, 100 * std::expm1(error));
}

}  // namespace

std::span<const PriceKey> price_keys() {
  static const PriceKey keys[] = {
      {"call", "s", 1, "what a call takes beside its steps"},
      {"step", "s", 1, "what a core spends on a step of a schedule"},
      {"message", "s", 1, "what a core spends on a message, at each end"},
      {"latency", "s", 1, "until another rank sees a step or a message"},
      {"handshake", "s", 1, "by which a message longer than eager_bytes is delayed"},
      {"turn", "s", 1, "for which a core is lost when it turns to another rank, if ranks outnumber cores"},
      {"touch", "B/s", footprints.size(), "how fast a core loads or stores what its caches hold or memory has"},
      {"cross", "B/s", footprints.size(), "how fast a core loads or stores what another core last wrote or holds"},
      {"cross_sum", "B/s", 1, "beside cross, how fast a core adds what another core's caches hold"},
      {"sum", "B/s", 1, "how fast a core adds f32 values, beside loading and storing them"},
      {"copy", "B/s", 1,
       "how fast a core moves a message, beside loading and storing it; through a flag page on mapped memory"},
      {"eager", "B/s", 1, "how fast a sender copies out a message of at most eager_bytes"},
      {"eager_bytes", "B", 1, "longest message that leaves before its receiver has asked for it"},
      {"link", "B/s", 1, "what a host sends, and receives, between hosts"},
      {"burst", "B", 1, "bytes that an idle link sends without delay, such as the size of a token bucket"},
  };
  return keys;
}

std::filesystem::path default_machine_file() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / fmt::format("machine-{}.toml", host_name());
}

Machine parse_machine(const std::string& text, const std::string& file) {
  const toml::table all = toml_in(text, {file, "machine file", how_to_mend});
  const FieldsFile described{file, "machine file",
                             all.contains("accelerator") ? "correct the line (docs/machine_file.md)" : how_to_mend};
  TomlFields top(all, "", described);
  if (top.text("schema") != schema) top.refuse("schema", top.find("schema"), fmt::format("is not \"{}\"", schema));
  if (const std::int64_t found = top.integer("version", 1, most_count); found != version)
    top.refuse("version", top.find("version"), fmt::format("is {}, but this program reads version {}", found, version));
  Machine machine{
      .signature = top.text("machine"), .system = system_of(top), .file = std::filesystem::path(file).filename()};
  if (machine.system) machine.system->file = machine.file;
  machine.cores =
      static_cast<int>(machine.system ? top.number("cores", 1, most_count, 1) : top.number("cores", 1, most_count));
  for (TomlFields& row : top.tables("peak")) {
    machine.peaks.push_back({{row.text("type"), row.text("processor"), row.text("library", "")},
                             {row.number("flops", 1, most_rate), row.text("measured", ""), row.flag("busy")}});
    row.finish();
  }
  for (TomlFields& row : top.tables("sum")) {
    machine.sums.push_back({row.text("type"), row.number("rate", 1, most_rate), row.number("spread", 0, most_rate, 0),
                            row.text("measured", "")});
    row.finish();
  }
  for (TomlFields& row : top.tables("compute")) {
    machine.computes.push_back({.type = row.text("type"),
                                .ranks = static_cast<int>(row.number("ranks", 1, most_count)),
                                .product = row.number("product", 1, most_rate),
                                .attention = row.number("attention", 1, most_rate),
                                .elements = row.number("elements", 1, most_rate),
                                .update = row.number("update", 1, most_rate),
                                .error = row.number("error", 0, 100, 0),
                                .measured = row.text("measured", ""),
                                .busy = row.flag("busy")});
    row.finish();
  }
  for (const TomlFields& row : top.tables("level")) machine.levels.push_back(level_of(row));
  top.finish();
  return machine;
}

Machine read_machine(const std::filesystem::path& file) {
  return parse_machine(config_text(file, "--machine"), file.string());
}

Machine machine_for(const std::string& named) {
  const std::filesystem::path file = named.empty() ? default_machine_file() : std::filesystem::path(named);
  if (named.empty() && (file.empty() || !std::filesystem::exists(file))) return {};
  Machine machine = read_machine(file);
  if (!named.empty()) machine.signature = machine_signature();
  return machine;
}

std::string origin_of(const Machine& machine, const Level& level) {
  return calibrated(machine.file, level.measured, level.ranks, level.error, level.busy, "median");
}
std::string origin_of(const Machine& machine, const ComputeRates& rates) {
  return calibrated(machine.file, rates.measured, rates.ranks, rates.error, rates.busy, "largest");
}
std::string origin_of(const System& system) {
  return system.file + ", not calibrated: its values were stated, not measured here";
}

std::string to_toml(const Machine& machine) {
  std::string text = fmt::format(
      "# Written by chorale; docs/machine_file.md describes every key.\nschema = \"{}\"\nversion = {}\n"
      "machine = {}\ncores = {}\n",
      schema, version, quoted(machine.signature), machine.cores);
  for (const auto& [key, peak] : machine.peaks)
    text += fmt::format("\n[[peak]]\ntype = {}\nprocessor = {}\nlibrary = {}\nflops = {}  # 1/s\nmeasured = {}\nbusy = {}\n",
                        quoted(key.type), quoted(key.processor), quoted(key.library), peak.flops, quoted(peak.measured),
                        peak.busy);
  for (const SumRate& sum : machine.sums)
    text += fmt::format("\n[[sum]]\ntype = {}\nrate = {:.4g}  # B/s\nspread = {:.2g}\nmeasured = {}\n", quoted(sum.type),
                        sum.rate, sum.spread, quoted(sum.measured));
  for (const ComputeRates& rates : machine.computes)
    text += fmt::format(
        "\n[[compute]]\ntype = {}\nranks = {}\nproduct = {:.4g}  # 1/s\nattention = {:.4g}  # 1/s\n"
        "elements = {:.4g}  # B/s\nupdate = {:.4g}  # B/s\nerror = {:.3g}\nmeasured = {}\nbusy = {}\n",
        quoted(rates.type), rates.ranks, rates.product, rates.attention, rates.elements, rates.update, rates.error,
        quoted(rates.measured), rates.busy);
  for (const Level& level : machine.levels) {
    text += fmt::format(
        "\n[[level]]\nbackend = {}\nspan = {}\nranks = {}\nhosts = {}\nshared_cores = {}\nmeasured = {}\nbusy = {}\n",
        quoted(level.backend), quoted(level.span), level.ranks, level.hosts, level.shared_cores, quoted(level.measured),
        level.busy);
    if (level.barrier >= 0) text += fmt::format("beat = {:.4g}  # s\n", level.barrier);
    if (level.staged_bytes >= 0) text += fmt::format("staged_bytes = {}  # B\n", level.staged_bytes);
    text += fmt::format("rows = {}\nerror = {:.3g}\nerror_95 = {:.3g}\n", level.rows, level.error, level.error_95);
    for (const PriceKey& key : price_keys())
      if (const auto found = level.prices.find(key.name); found != level.prices.end())
        text += fmt::format("{} = {}  # {}\n", key.name, list(found->second), key.unit);
    if (!level.spread.empty()) text += "[level.spread]\n";
    for (const PriceKey& key : price_keys())
      if (const auto found = level.spread.find(key.name); found != level.spread.end())
        text += fmt::format("{} = {}\n", key.name, list(found->second));
  }
  return text;
}

Machine own_machine(const std::filesystem::path& file) {
  const std::string here = machine_signature();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {.signature = here, .cores = online_cores()};
  Machine machine = read_machine(file);
  if (machine.signature != here)
    usage_error("the machine file belongs to another machine",
                fmt::format("{}: {}; this machine: {}", file.string(), machine.signature, here),
                "move the file away, or name another one with --machine FILE");
  return machine;
}

std::string change_machine(const std::filesystem::path& file, const std::function<void(Machine&)>& change) {
  if (file.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
  Machine machine = own_machine(file);  // reads the file again, because another program might have changed it
  change(machine);
  return replace_file(file, to_toml(machine));
}

MachineFile::MachineFile(std::filesystem::path file) : file_(std::move(file)) {}

std::optional<MeasuredPeak> MachineFile::peak(const PeakKey& key) const try {
  for (const auto& [known_key, peak] : own_machine(file_).peaks)
    if (known_key == key) return peak;
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

std::string MachineFile::keep(const PeakKey& key, const MeasuredPeak& peak) const {
  return change_machine(file_, [&](Machine& machine) {
    std::erase_if(machine.peaks, [&](const auto& row) { return row.first == key; });
    machine.peaks.push_back({key, peak});
  });
}

}  // namespace chorale
