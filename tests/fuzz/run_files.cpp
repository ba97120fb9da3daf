// Fuzz targets for the files that runs write: records, live metrics and flight recorders.
#include <filesystem>

#include <chorale/clock.hpp>
#include "experiments/watch/metrics.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"
#include "src/record/reader.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/record/rows.hpp"

namespace chorale::test {

// Reads every part of a record that some command reads.
void fuzz_record(std::string_view input) {
  put_bytes("run.h5", input);
  const Reader reader("run.h5");
  for (const std::string& group : reader.groups()) try {
      reader.attributes(group);
      reader.rows(group);
      reader.variables(group);
      reader.variables(group, 3);
    } catch (const Error&) {}  // other groups of the record may still be readable
}

std::vector<std::string> record_samples() {
  std::filesystem::remove_all("record");
  std::filesystem::create_directories("record");
  SystemClock clock;
  Recorder recorder("record", {{"run_id", "sample"}, {"user", "somebody"}}, clock);
  recorder.number("jobsize", 3);
  recorder.dimension({.name = "rank", .size = 3});
  recorder.texts("ranks", "host", "rank", {"north", "søuth", ""});
  recorder.numbers("ranks", "cpu", {"rank"}, std::vector<std::int64_t>{0, 1, -1}, "1", "core");
  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step"});
  for (std::int64_t step = 0; step < 40; ++step) recorder.append(train, train_row(step));
  recorder.finish("ok");
  return {bytes_in("record/run.h5")};
}

void fuzz_metrics(std::string_view input) {
  put_bytes("metrics.jsonl", input);
  watch::MetricsFile file;
  file.read("metrics.jsonl");
  if (file.metrics().steps.empty() && file.metrics().run_id.empty()) usage_error("nothing in it was understood", "", "");
}

void fuzz_flight(std::string_view input) {
  std::filesystem::create_directories("flight");
  put_bytes("flight/host-0.json", input);
  const std::vector<SeenRank> ranks = read_dumps(".").ranks;
  for (const SeenRank& rank : ranks) {
    in_words(rank);
    newest_calls(rank.page);
    explain_end(rank, ranks);
  }
  explain_deadlock(ranks);
  explain_hang(ranks, 60);
}

}  // namespace chorale::test
