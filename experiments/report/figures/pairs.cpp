// Shows the bytes that each rank sends to every other rank. For each question (an operation with its conditions,
// bench_series.hpp), the fastest algorithm at the largest size is shown. A record has only the sum over all ranks. The
// algorithm's schedule gives the bytes of each pair. The bytes of the pairs are shown only if they add up to the recorded
// sum.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <chorale/algorithm.hpp>
#include "collectives/schedule/each_message.hpp"
#include "experiments/report/bench_series.hpp"
#include "experiments/report/figures/figures.hpp"

namespace chorale::report {
namespace {

constexpr std::int64_t most_ranks = 16;

using Matrix = std::vector<std::vector<double>>;

// Returns nothing if the algorithm's schedule is unknown, or if the scheduled bytes do not add up to the recorded bytes.
Matrix bytes_between(const BenchRow& row) {
  const auto name = std::find(std::begin(collective_names), std::end(collective_names), row.op);
  if (name == std::end(collective_names) || row.count <= 0 || row.ranks < 2 || row.ranks > most_ranks ||
      !(row.bytes_sent > 0))
    return {};
  const auto what = static_cast<Collective>(name - std::begin(collective_names));
  const Algorithm* algorithm = find_algorithm(what, row.algorithm);
  const Problem problem =
      Problem::even(what, row.count, static_cast<int>(row.ranks), static_cast<int>(std::max<std::int64_t>(0, row.root)));
  if (!algorithm || !fits(*algorithm, problem)) return {};
  const std::vector<Schedule> ranks = plan_all_ranks(*algorithm, problem);
  Matrix matrix(ranks.size(), std::vector<double>(ranks.size(), 0));
  double all = 0;
  for (std::size_t from = 0; from < ranks.size(); ++from)
    each_message(ranks[from], [&](int to, std::int64_t elements) {
      const double bytes = static_cast<double>(elements) * row.bytes / static_cast<double>(row.count);
      matrix[from][static_cast<std::size_t>(to)] += bytes;
      all += bytes;
    });
  return std::abs(all - row.bytes_sent) < 0.5 ? matrix : Matrix{};
}

CellChart chart_of(const BenchRow& row, const Matrix& matrix, double most) {
  CellChart chart{.title = fmt::format("{}, {}, {}", row.question, row.name, quantity(row.bytes, Unit::bytes)),
                  .description = "One row per sender, one column per receiver; darker cells have more bytes.",
                  .row_name = "from rank",
                  .column_name = "to rank"};
  for (std::size_t from = 0; from < matrix.size(); ++from) {
    chart.rows.push_back(fmt::format("{}", from));
    chart.columns.push_back(fmt::format("{}", from));
    chart.cells.emplace_back();
    for (std::size_t to = 0; to < matrix.size(); ++to) {
      const std::string bytes = quantity(matrix[from][to], Unit::bytes);
      chart.cells.back().push_back({matrix[from][to] > 0 ? bytes : "", fmt::format("{} to {}: {}", from, to, bytes), "",
                                    most > 0 ? matrix[from][to] / most : 0});
    }
  }
  return chart;
}

}  // namespace

std::optional<Figure> pairs(const RecordSet& records) {
  const std::vector<BenchRow> rows = bench_rows(records);
  Figure figure{.numbers = TextTable({"operation", "series", "from", "to", "bytes"})};
  double least_share = 2;
  for (const std::string& question : questions_of(rows)) {
    const BenchRow* chosen = nullptr;
    Matrix matrix;
    for (const BenchRow& row : rows) {
      if (row.question != question ||
          (chosen && (row.bytes < chosen->bytes || (row.bytes == chosen->bytes && row.median >= chosen->median))))
        continue;
      if (Matrix found = bytes_between(row); !found.empty()) {
        chosen = &row;
        matrix = std::move(found);
      }
    }
    if (!chosen) continue;
    double most = 0, most_sent = 0;
    std::size_t used = 0;
    for (std::size_t from = 0; from < matrix.size(); ++from) {
      double sent = 0;
      for (std::size_t to = 0; to < matrix.size(); ++to) {
        if (matrix[from][to] <= 0) continue;
        most = std::max(most, matrix[from][to]);
        sent += matrix[from][to];
        ++used;
        figure.numbers.add({question, chosen->name, fmt::format("{}", from), fmt::format("{}", to),
                            fmt::format("{:.0f}", matrix[from][to])});
      }
      most_sent = std::max(most_sent, sent);
    }
    figure.charts.push_back(drawing_of(chart_of(*chosen, matrix, most)));
    const double share = static_cast<double>(used) / static_cast<double>(matrix.size() * (matrix.size() - 1));
    if (share >= least_share) continue;
    least_share = share;
    figure.finding =
        fmt::format("{} by {} uses the fewest connections: {} of {} pairs of ranks; no rank sends more than {}.", question,
                    chosen->name, used, matrix.size() * (matrix.size() - 1), quantity(most_sent, Unit::bytes));
  }
  if (figure.charts.empty()) return {};
  return figure;
}

}  // namespace chorale::report
