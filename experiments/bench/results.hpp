// What a benchmark shows: a row for each series, in the columns of nccl-tests for people, as objects with everything for
// programs; and a record with every sample of every rank.
//
//   /series   series(series*)   what was measured, and its summary
//   /samples  sample*           series, repetition, rank, time
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
  bool oversubscribed = false;        // more ranks than cores on a host
  double predicted = -1;              // seconds, by the cost model; −1: it knows nothing of this
  std::int64_t bytes_predicted = -1;  // sent by all ranks together
};

// null where there is no value.
nlohmann::ordered_json describe(const Result& result, const Conditions& conditions);

double rounded(double value);  // to the digits that were measured

std::string print(const std::vector<nlohmann::ordered_json>& rows, const std::string& format);

void write(Recorder& recorder, const std::vector<Result>& results, const Conditions& conditions);

}  // namespace chorale::bench
