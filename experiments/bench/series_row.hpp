// One row of a benchmark: the requested call, its time and its speed. Every row is stored as a SeriesRow. The record
// (results.hpp), JSON and CSV have the columns that columns() lists. Text tables and notes read the members of SeriesRow.
//
//   record       exact numbers; absent: NaN or −1
//   JSON, CSV    five digits (in_five_digits); absent: null in JSON, empty in CSV
//
// To add a column, add a member, its line in columns(), and its value in row_of (results.cpp). If the new member can differ
// between launches, also merge its values in merged_row (launches.cpp).
#pragma once
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include <chorale/problem.hpp>
#include "collectives/choice/decision.hpp"
#include "experiments/bench/cases.hpp"
#include "src/record/table.hpp"

namespace chorale::bench {

enum class Cache : std::uint8_t { hot, cold };
enum class Where : std::uint8_t { symmetric, heap, device };
inline constexpr const char* cache_names[] = {"hot", "cold"};
inline constexpr const char* where_names[] = {"symmetric", "heap", "device"};

using Names = std::vector<std::string>;
Names collectives_of_rows();  // these functions return the values of label columns
Names backends_of_rows();
Names redops_of_rows();

struct SeriesRow {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  Collective op = Collective::all_reduce;
  std::string backend, algorithm, chosen;
  DType dtype = DType::f32;
  std::string redop = "none";
  bool in_place = false;
  Cache cache = Cache::hot;
  Where memory = Where::symmetric;
  std::uint8_t oversubscribed = 0, calibrated = 0;  // integers, because JSON prints them as 0 and 1
  std::int64_t chunks = 1, root = -1, ranks = 1, hosts = 1, count = 0, bytes = 0, repetitions = 0, turn = 0;
  std::optional<std::int64_t> wrong, bytes_predicted;
  std::optional<double> bytes_sent;
  double median = 0, ci_low = 0, ci_high = 0, p5 = 0, p95 = 0, predicted = unknown, ceiling = unknown;
  double algorithm_bandwidth = unknown, bus_bandwidth = unknown, barrier = unknown, usual_barrier = unknown;
  double p99 = unknown, max = unknown;
  std::int64_t groups = 1, products = 0;
  double products_alone = unknown, call_beside = unknown, products_beside = unknown, both = unknown;
  double both_predicted = unknown, hidden = unknown;
  bool strided = false;
  std::int64_t launches = 1;

  static auto columns() {
    using Row = SeriesRow;
    const Names no_yes{"no", "yes"}, caches(std::begin(cache_names), std::end(cache_names)),
        memories(std::begin(where_names), std::end(where_names));
    return std::tuple{
        column("op", &Row::op, "", "operation", collectives_of_rows()),
        column("backend", &Row::backend, "", "backend that carried the calls", backends_of_rows()),
        column("algorithm", &Row::algorithm, "", "algorithm as requested", algorithm_names()),
        column("chosen", &Row::chosen, "", "algorithm that ran", algorithm_names()),
        column("dtype", &Row::dtype, "", "element type", dtype_names()),
        column("redop", &Row::redop, "", "operator", redops_of_rows()),
        column("in_place", &Row::in_place, "", "input and output are one buffer", no_yes),
        column("cache", &Row::cache, "", "whether buffers were in the cache", caches),
        column("memory", &Row::memory, "", "memory that held the buffers", memories),
        column("oversubscribed", &Row::oversubscribed, "", "more ranks than cores on a host", no_yes),
        column("calibrated", &Row::calibrated, "", "predicted by prices measured on this machine", no_yes),
        column("chunks", &Row::chunks, "1", "chunks that the schedule is cut into"),
        column("root", &Row::root, "1", "root; -1: none"),
        column("ranks", &Row::ranks, "1", "ranks in the group"),
        column("hosts", &Row::hosts, "1", "hosts of these ranks, real or pretended (--hosts)"),
        column("count", &Row::count, "1", "elements of the whole vector"),
        column("bytes", &Row::bytes, "byte", "size of the whole vector"),
        column("repetitions", &Row::repetitions, "1", "timed calls"),
        column("turn", &Row::turn, "1", "position in the order in which the rows were measured").only_recorded(),
        column("wrong", &Row::wrong, "1", "wrong elements in the checked calls, or -1"),
        column("bytes_predicted", &Row::bytes_predicted, "byte", "sent by all ranks in a call, by the schedule, or -1"),
        column("bytes_sent", &Row::bytes_sent, "byte", "sent by all ranks in a call, as counted, or -1"),
        column("median", &Row::median, "s", "median over the repetitions of the slowest rank's time").printed_as("seconds"),
        column("ci_low", &Row::ci_low, "s", "95 % interval of the median, lower end").printed_as("seconds_ci_low"),
        column("ci_high", &Row::ci_high, "s", "95 % interval of the median, upper end").printed_as("seconds_ci_high"),
        column("p5", &Row::p5, "s", "5 % of the repetitions were faster").printed_as("seconds_p5"),
        column("p95", &Row::p95, "s", "5 % of the repetitions were slower").printed_as("seconds_p95"),
        column("predicted", &Row::predicted, "s", "time by the cost model").printed_as("predicted_seconds"),
        column("ceiling", &Row::ceiling, "s", "time of the same loads and stores without waits")
            .printed_as("ceiling_seconds"),
        column("algbw_bytes_per_s", &Row::algorithm_bandwidth, "byte s-1", "size divided by time").only_printed(),
        column("busbw_bytes_per_s", &Row::bus_bandwidth, "byte s-1", "the same over the busiest link").only_printed(),
        column("launches", &Row::launches, "1", "launches whose medians these are").only_printed(),
        column("barrier_seconds", &Row::barrier, "s", "barrier just before the calls (barrier_time.hpp)").only_printed(),
        column("usual_barrier_seconds", &Row::usual_barrier, "s", "barrier when prices were measured").only_printed(),
        column("p99", &Row::p99, "s", "1 % of the repetitions were slower").printed_as("seconds_p99"),
        column("max", &Row::max, "s", "slowest repetition").printed_as("seconds_max"),
        column("groups", &Row::groups, "1", "groups that call at the same time; `ranks` is the size of one"),
        column("strided", &Row::strided, "", "every N-th rank forms a group, not consecutive ranks", no_yes),
        column("products", &Row::products, "1", "matrix products of each rank beside a call; 0: none"),
        column("products_alone", &Row::products_alone, "s", "these products without a call").printed_as("products_seconds"),
        column("call_beside", &Row::call_beside, "s", "the call beside the products").printed_as("beside_seconds"),
        column("products_beside", &Row::products_beside, "s", "the products beside the call")
            .printed_as("products_beside_seconds"),
        column("both", &Row::both, "s", "until the call and the products are complete").printed_as("both_seconds"),
        column("both_predicted", &Row::both_predicted, "s", "`both` by the cost model").printed_as("both_predicted_seconds"),
        column("hidden", &Row::hidden, "1", "(median + products_alone - both) / the shorter of the two").only_printed(),
    };
  }
};
using Rows = std::vector<SeriesRow>;

std::int64_t wrong_in(const Rows& rows);  // number of wrong elements

SeriesRow in_five_digits(SeriesRow row);  // rounds times and bandwidths to five digits; a count of bytes stays exact

// Returns a JSON object with the printed columns: first the old columns in their fixed order, then the newer columns.
nlohmann::ordered_json as_json(const SeriesRow& row);
// Parses a row that as_json() wrote, in this or in an older version of the program. A missing column keeps its default.
SeriesRow row_from(const nlohmann::ordered_json& object);

}  // namespace chorale::bench
