#include "collectives/choice/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema = "chorale tuning";
constexpr int table_version = 1;

Collective collective_named(const std::string& name) {
  const auto found = std::find(std::begin(collective_names), std::end(collective_names), name);
  if (found == std::end(collective_names)) throw std::runtime_error("no collective is called " + name);
  return static_cast<Collective>(found - std::begin(collective_names));
}

Json line_of(const Tuned& t) {
  return {{"backend", t.backend},       {"op", name_of(t.what)},    {"ranks", t.ranks},         {"hosts", t.hosts},
          {"in_place", t.in_place},     {"bytes", t.bytes},         {"algorithm", t.algorithm}, {"chunks", t.chunks},
          {"time_us", t.seconds * 1e6}, {"runner_up", t.runner_up}, {"ratio", t.ratio},         {"ratio_low", t.ratio_low},
          {"ratio_high", t.ratio_high}};
}

Tuned choice_of(const Json& line) {
  Tuned t{.backend = line.at("backend"), .what = collective_named(line.at("op")), .ranks = line.at("ranks")};
  t.in_place = line.at("in_place");
  t.bytes = line.at("bytes");
  t.algorithm = line.at("algorithm");
  t.chunks = line.at("chunks");
  t.seconds = line.at("time_us").get<double>() * 1e-6;
  t.runner_up = line.at("runner_up");
  t.ratio = line.at("ratio");
  t.ratio_low = line.value("ratio_low", 0.0);
  t.ratio_high = line.value("ratio_high", 0.0);
  t.hosts = line.value("hosts", 1);
  if (t.ranks < 1 || t.hosts < 1 || t.bytes < 0 || t.chunks < 1) throw std::runtime_error("a choice has invalid numbers");
  return t;
}

[[noreturn]] void refuse_table(const std::string& file, const std::string& why) {
  usage_error("this is not a tuning table", fmt::format("{}: {}", file, why), "make one with chorale tune --tuning FILE");
}

}  // namespace

std::string Tuned::why() const {
  const std::string own = fmt::format("{} at {} bytes", human_seconds(seconds), bytes);
  if (runner_up.empty()) return own + ", and nothing else fits";
  const std::string interval = ratio_high > 0 ? fmt::format(" ({:.2f} to {:.2f})", ratio_low, ratio_high) : "";
  const bool may_be_noise = ratio_high > 0 && ratio_low <= 1;
  return fmt::format("{}, {} took {:.2f} times as long in one launch{}{}{}", own, runner_up, ratio, interval,
                     may_be_noise ? ", within the noise" : "", may_be_noise && ratio < 1 ? ": the usual one stays" : "");
}

std::filesystem::path default_tuning_file() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "tuning.json";
}

TuningTable read_tuning(const std::filesystem::path& file) {
  const auto text = contents_of(file);
  if (!text) refuse_table(file.string(), std::strerror(errno));
  return parse_tuning(*text, file.string());
}

TuningTable tuning_of_this_host() {
  const std::filesystem::path file = default_tuning_file();
  return !file.empty() && std::filesystem::exists(file) ? read_tuning(file) : TuningTable{};
}

TuningTable parse_tuning(const std::string& text, const std::string& file) {
  TuningTable table;
  try {
    const Json all = Json::parse(text);
    if (all.at("schema") != schema) throw std::runtime_error("it has another schema");
    if (const int found = all.at("version"); found != table_version)
      throw std::runtime_error(fmt::format("its version is {}; this program reads version {}", found, table_version));
    table.machine = all.at("machine");
    for (const Json& line : all.at("choices")) table.choices.push_back(choice_of(line));
  } catch (const std::exception& error) {
    refuse_table(file, error.what());
  }
  return table;
}

std::string text_of(const TuningTable& table) {
  std::string text = fmt::format("{{\"schema\":\"{}\",\"version\":{},\n \"machine\":{},\n \"choices\":[\n", schema,
                                 table_version, Json(table.machine).dump());
  for (std::size_t i = 0; i < table.choices.size(); ++i)
    text += fmt::format("  {}{}\n", line_of(table.choices[i]).dump(), i + 1 < table.choices.size() ? "," : "");
  return text + "]}\n";
}

void write_tuning(const std::filesystem::path& file, const TuningTable& table) {
  if (const std::string why_not = replace_file(file, text_of(table)); !why_not.empty())
    usage_error("the tuning table cannot be written", fmt::format("{}: {}", file.string(), why_not),
                "name another place with --tuning FILE");
}

}  // namespace chorale
