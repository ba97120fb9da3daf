// The file format of TensorBoard is simple enough to be written without protobuf. A file is a sequence of frames, and each
// frame has an Event:
//
//   8 bytes  n, little endian          Event   {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary}
//   4 bytes  masked CRC of these 8     Summary {1: Value, again and again}
//   n bytes  an Event                  Value   {1: string tag, 2: float simple_value}
//   4 bytes  masked CRC of these n
//
// The mask is defined by TensorFlow. Without the mask, the checksum of data that end with their own checksum would be a
// constant.
#include "experiments/report/tensorboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>

#include "experiments/common/advice.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

// A message in the protocol buffers format. Each field consists of a field number, a wire type and a value.
class ProtocolMessage {
 public:
  ProtocolMessage& number(int field, double value) { return key(field, 1).raw(value); }
  ProtocolMessage& number(int field, float value) { return key(field, 5).raw(value); }
  ProtocolMessage& integer(int field, std::uint64_t value) { return key(field, 0).varint(value); }
  ProtocolMessage& text(int field, const std::string& value) {
    key(field, 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  ProtocolMessage& key(int field, int wire_type) { return varint(static_cast<std::uint64_t>(field << 3 | wire_type)); }
  ProtocolMessage& varint(
      std::uint64_t value) {  // seven bits per byte, the low bits first; the eighth bit is set if more bytes follow
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <class T>
  ProtocolMessage& raw(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }

  std::string bytes_;
};

template <class T>
std::string in_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string masked_crc(const std::string& bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return in_bytes(std::rotr(crc, 15) + 0xa282ead8U);
}

std::string frame(const ProtocolMessage& event) {
  const std::string length = in_bytes(std::uint64_t{event.bytes().size()});
  return length + masked_crc(length) + event.bytes() + masked_crc(event.bytes());
}

// Converts the start time in a record's root, "2026-11-21T03:41:37Z", to seconds since 1970; 0 if there is none.
double start_of(const std::string& launchdate) {
  std::tm parts{};
  return strptime(launchdate.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) ? static_cast<double>(timegm(&parts)) : 0;
}

struct ScalarColumn {
  const char* variable;
  const char* tag;
};

// Returns one frame per row of a table. A column is left out if none of its values is known. In the other columns NaN is
// written too, because a loss that became NaN must be visible.
std::string frames_of(const RecordGroup& table, const std::vector<double>& times, const std::vector<ScalarColumn>& columns) {
  std::vector<std::pair<std::string, std::vector<double>>> known;
  for (const auto& [variable, tag] : columns)
    if (std::vector<double> values = table.numbers(variable);
        std::ranges::any_of(values, [](double value) { return !std::isnan(value); }))
      known.emplace_back(tag, std::move(values));
  std::string frames;
  const std::vector<double> steps = table.numbers("step");
  for (std::size_t row = 0; row < steps.size(); ++row) {
    ProtocolMessage summary;
    for (const auto& [tag, values] : known)
      summary.text(1, ProtocolMessage().text(1, tag).number(2, static_cast<float>(values.at(row))).bytes());
    ProtocolMessage event;
    event.number(1, row < times.size() ? times[row] : times.empty() ? 0.0 : times.back());
    frames += frame(event.integer(2, static_cast<std::uint64_t>(steps[row])).text(5, summary.bytes()));
  }
  return frames;
}

// The wall-clock time of each row of `table`. The time of a row is the time of the last training step at or before the row's
// step.
std::vector<double> times_of(const RecordGroup& table, const std::vector<double>& train_steps,
                             const std::vector<double>& times) {
  std::vector<double> found;
  for (const double step : table.numbers("step")) {
    const auto after = std::upper_bound(train_steps.begin(), train_steps.end(), step) - train_steps.begin();
    found.push_back(times[static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - 1, 0))]);
  }
  return found;
}

// Converts a string from a file to a valid folder name.
std::string as_name(const std::string& word) {
  const std::string name = replace_all(word, '/', '_');
  return name.empty() || name.front() == '.' ? "run" + name : name;
}

}  // namespace

std::vector<std::string> write_tensorboard(const RecordSet& records, const fs::path& folder) {
  std::vector<std::string> files;
  for (const RecordedRun& run : records.runs) {
    const RecordGroup train = run.group("train"), eval = run.group("eval");
    std::vector<double> times = train.numbers("time");
    if (times.empty()) continue;
    const double start = start_of(run.attribute("launchdate"));
    for (double& time : times) time += start;
    std::string text = frame(ProtocolMessage().number(1, start).text(3, "brain.Event:2"));
    text += frames_of(train, times,
                      {{"loss", "train/loss"},
                       {"grad_norm", "train/grad_norm"},
                       {"lr", "train/lr"},
                       {"tokens_per_s", "speed/tokens_per_s"},
                       {"mfu", "speed/mfu"},
                       {"step_time", "speed/step_time"}});
    text += frames_of(eval, times_of(eval, train.numbers("step"), times), {{"loss", "eval/loss"}});
    if (!run.source) continue;  // a row of a CSV file has no steps
    const std::string suite = run.prefix.empty() ? "" : as_name(run.source->reader.attribute("run_id"));
    const fs::path file = folder / suite / as_name(run.id) / fmt::format("events.out.tfevents.{:.0f}.chorale", start);
    if (const std::string why_not = replace_file(file, text); !why_not.empty())
      usage_error("cannot write TensorBoard's file", fmt::format("{}: {}", file.string(), why_not),
                  "name a writable folder: --tensorboard DIR");
    files.push_back(file.string());
  }
  if (files.empty())
    usage_error("none of the runs has trained a step", join(records.files, " "),
                program() + " report FILE.h5 shows what a record holds");
  return files;
}

}  // namespace chorale::report
