#include "src/base/machine_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/host.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

Json nothing_of_this_machine() {
  return {{"schema", "chorale machine"}, {"version", 1}, {"machine", machine_signature()}, {"peaks", Json::array()}};
}

Json read(const std::filesystem::path& file) {
  const Json empty = nothing_of_this_machine();
  std::ifstream stream(file);
  Json found = Json::parse(stream, nullptr, false);
  for (const char* key : {"schema", "version", "machine"})
    if (!found.is_object() || found.value(key, Json()) != empty[key]) return empty;
  return found["peaks"].is_array() ? found : empty;
}

bool is_of(const Json& row, const PeakKey& key) {
  return row.is_object() && row.value("type", Json()) == key.type && row.value("processor", Json()) == key.processor &&
         row.value("library", Json()) == key.library;
}

}  // namespace

std::filesystem::path default_machine_file() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / fmt::format("machine-{}.json", host_name());
}

MachineFile::MachineFile(std::filesystem::path file) : file_(std::move(file)) {}

std::optional<MeasuredPeak> MachineFile::peak(const PeakKey& key) const {
  const Json all = read(file_);
  for (const Json& row : all["peaks"]) {
    if (!is_of(row, key)) continue;
    const auto flops = row.find("flops"), measured = row.find("measured"), busy = row.find("busy");
    if (flops == row.end() || !flops->is_number() || flops->get<double>() <= 0) continue;
    if (measured == row.end() || !measured->is_string() || busy == row.end() || !busy->is_boolean()) continue;
    return MeasuredPeak{*flops, *measured, *busy};
  }
  return std::nullopt;
}

std::string MachineFile::keep(const PeakKey& key, const MeasuredPeak& peak) const {
  if (file_.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
  Json all = read(file_);  // read again: another program may have added to it
  Json rows = Json::array();
  for (const Json& row : all["peaks"])
    if (!is_of(row, key)) rows.push_back(row);
  rows.push_back({{"type", key.type},
                  {"processor", key.processor},
                  {"library", key.library},
                  {"flops", peak.flops},
                  {"measured", peak.measured},
                  {"busy", peak.busy}});
  all["peaks"] = rows;
  return replace_file(file_, all.dump(1) + "\n");
}

}  // namespace chorale
