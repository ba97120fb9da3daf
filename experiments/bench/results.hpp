// The results of a benchmark: a JSON object with all values for each series, which tables.hpp prints, and a record with
// every sample of every rank.
//
//   /series   row*      what was measured, and its summary
//   /samples  sample*   series, repetition, rank, time
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/bench/measure.hpp"
#include "src/record/recorder.hpp"

namespace chorale::bench {

enum class Where : std::uint8_t { symmetric, heap, device };
inline constexpr const char* where_names[] = {"symmetric", "heap", "device"};

struct Conditions {  // the same for a whole run
  bool cold = false;
  Where memory = Where::symmetric;
};

struct Result {
  Series series;
  bool oversubscribed = false;        // more ranks than cores on some host
  double predicted = -1;              // seconds by the cost model; −1: unknown
  bool calibrated = false;            // `predicted` is by the machine file, not by typical prices
  double usual_beat = -1;             // seconds of a barrier when these prices were measured; −1: unknown
  std::int64_t bytes_predicted = -1;  // sent by all ranks in a call; −1: unknown
};

// The row of a result, as JSON and CSV show it: bytes, seconds and bytes per second. A missing value is null.
nlohmann::ordered_json describe(const Result& result, const Conditions& conditions);

double rounded(double value);  // to five digits

void write(Recorder& recorder, const std::vector<Result>& results, const Conditions& conditions);

}  // namespace chorale::bench
