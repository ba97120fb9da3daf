// `chorale verify` proves that every collective algorithm is right on 1 to 64 ranks (--ranks). With p ranks, it tries
// vectors of 0, 1, p−1, p and 2p+1 elements, for p up to 16 also of 7p+3, and blocks of unequal sizes. It tries calls in
// place and out of place, schedules with and without chunks, and several numbers of ranks per host. It prints one line per
// algorithm, and a total. If a proof fails, it names rank, step and element, and exits with 3. Pipeline schedules are proved
// likewise, for many numbers of stages, micro-batches and chunks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "collectives/algorithms.hpp"
#include "collectives/analysis/checker.hpp"
#include "collectives/chunking.hpp"
#include "experiments/command.hpp"
#include "experiments/random_order.hpp"
#include "parallel/pipeline/check.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Pipeline schedules are proved up to these sizes.
constexpr std::int64_t most_stages = 8, most_micro_batches = 16, most_chunks = 3;

// One collective call, as every rank sees it.
struct Call {
  std::vector<Problem> ranks;
  int chunks = 1;
  std::string words;
};

Call even_call(Collective what, int size, std::int64_t count, bool in_place, int chunks = 1,
               const std::vector<int>& hosts = {}) {
  const Problem problem = Problem::even(what, count, size, size / 2, in_place, hosts);
  Call call{{}, chunks, fmt::format("{} ranks, {} elements", size, count)};
  for (int rank = 0; rank < size; ++rank) call.ranks.push_back(problem.at(rank));
  if (chunks > 1) call.words += fmt::format(" in {} chunks", chunks);
  if (!hosts.empty()) call.words += fmt::format(" on hosts {}", fmt::join(hosts, ","));
  return call;
}

// Irregular blocks of 0 to 3 elements.
Call uneven_call(Collective what, int size, bool in_place) {
  const auto count = [](int a, int b) -> std::int64_t { return (7 * a * a + 3 * a * b + 5 * b) % 11 % 4; };
  std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(size));
  for (int a = 0; a < size; ++a)
    for (int b = 0; b < size; ++b) counts[static_cast<std::size_t>(a)].push_back(count(a, b));
  Call call{{}, 1, fmt::format("{} ranks, uneven blocks", size)};
  if (what == Collective::all_to_all) {
    call.ranks = Problem::exchange(counts, in_place);
    return call;
  }
  const Problem problem{what, 0, size, size / 2, Blocks(counts.back()), in_place};
  for (int rank = 0; rank < size; ++rank) call.ranks.push_back(problem.at(rank));
  return call;
}

// Rank r is on host r / `each`.
std::vector<int> hosts_of(int size, int each) {
  std::vector<int> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back(rank / std::max(each, 1));
  return hosts;
}

// Whether an algorithm's schedule depends on where the ranks are. Schedules are data, so two can be compared.
bool knows_hosts(const Algorithm& algorithm, int size) {
  const auto text = [&](const std::vector<int>& hosts) {
    return algorithm.plan(even_call(algorithm.what, size, 2 * size + 1, false, 1, hosts).ranks[0]).describe();
  };
  return text({}) != text(hosts_of(size, 1));
}

std::vector<Call> calls_for(const Algorithm& algorithm, int size) {
  const Collective what = algorithm.what;
  std::vector<Call> calls;
  for (const bool in_place : {false, true}) {
    if (what == Collective::barrier) {
      calls.push_back(even_call(what, size, 1, in_place));
      continue;
    }
    for (const std::int64_t count : {0, 1, size - 1, size, 2 * size + 1})
      calls.push_back(even_call(what, size, count, in_place));
    calls.push_back(uneven_call(what, size, in_place));
    calls.push_back(even_call(what, size, 2 * size + 1, in_place, in_place ? 2 : 3));
    const bool small = size <= 16;  // on few ranks, longer vectors are tried as well, so that every block is cut
    for (const int chunks : {2, 4, 7})
      if (small) calls.push_back(even_call(what, size, 7 * size + 3, in_place, chunks));
    if (knows_hosts(algorithm, size))
      for (const int each : {1, 2, 3, 4, 8, size - 1})
        for (const int chunks : {1, 3})
          if (chunks == 1 || small)
            calls.push_back(even_call(what, size, 2 * size + 1, in_place, chunks, hosts_of(size, each)));
  }
  const auto does_not_fit = [&](const Call& call) {
    return !std::all_of(call.ranks.begin(), call.ranks.end(), [&](const Problem& p) { return fits(algorithm, p); });
  };
  std::erase_if(calls, does_not_fit);
  return calls;
}

std::string prove(const Algorithm& algorithm, const Call& call) {
  std::vector<Schedule> schedules = plan_all_ranks(algorithm, call.ranks);
  if (call.chunks > 1)
    for (Schedule& schedule : schedules) schedule = cut_into_chunks(schedule, call.chunks);
  const std::string trouble = find_flaw(schedules);
  if (trouble.empty()) return "";
  return fmt::format("{}{}: {}", call.words, call.ranks[0].in_place ? ", in place" : "", trouble);
}

// The outcome of some of the proofs of an algorithm. The verdicts of an algorithm can be added in any order.
struct Verdict {
  std::int64_t problems = 0;  // number of problems that were proved
  std::string trouble;        // the flaw that was found; "" if there is none
  double seconds = 0;
};

// The proof of one algorithm or pipeline schedule (a row of their tables). Each of a row's tasks proves all problems of one
// size (number of ranks or stages).
struct Row {
  const char* what;
  const char* name;
  const char* unit;
  std::int64_t tasks;
  std::function<Verdict(int size)> prove;  // size from 1 to `tasks`
  Verdict verdict = {};
  std::int64_t done = 0, flawed = tasks + 1;  // tasks that are done; the smallest size with a flaw
};

Verdict verdict_on(const Algorithm& algorithm, int size) {
  Verdict verdict;
  for (const Call& call : calls_for(algorithm, size)) {
    if (verdict.trouble = prove(algorithm, call); !verdict.trouble.empty()) return verdict;
    ++verdict.problems;
  }
  return verdict;
}

Verdict verdict_on(const PipelineAlgorithm& row, std::int64_t stages) {
  Verdict verdict;
  for (std::int64_t micro_batches = 1; micro_batches <= most_micro_batches; ++micro_batches)
    for (std::int64_t chunks = 1; chunks <= most_chunks; ++chunks) {
      const PipelineShape shape{stages, micro_batches, chunks};
      if (!fits(row, shape)) continue;
      if (verdict.trouble = find_flaw(row.plan(shape)); !verdict.trouble.empty()) {
        verdict.trouble =
            fmt::format("{} stages, {} micro-batches, {} chunks: {}", stages, micro_batches, chunks, verdict.trouble);
        return verdict;
      }
      ++verdict.problems;
    }
  return verdict;
}

class Verify final : public Command {
 public:
  void declare(Options& options) override {
    options.add("ranks", ranks_, "prove for every number of ranks up to this").range(1, 256);
  }

  // A proof on 64 ranks takes thousands of times as long as a proof on 2. Tasks therefore run in random order: the finished
  // tasks are then a fair sample, from which the progress line can estimate the time to go. Rows are printed in the order of
  // the tables.
  int run(Session& session) override {
    std::vector<Row> rows = all_rows();
    std::vector<std::pair<Row*, int>> tasks;
    for (Row& row : rows)
      for (int size = 1; size <= row.tasks; ++size) tasks.emplace_back(&row, size);
    Progress progress("verify", static_cast<std::int64_t>(tasks.size()), session.clock, Progress::screen_of(stderr));
    std::mt19937_64 random(1);
    std::int64_t done = 0;
    std::size_t printed = 0;
    for (const std::size_t t : random_order(tasks.size(), random)) {
      auto& [row, size] = tasks[t];
      progress.update(done++, fmt::format("{} {}, {} {}", row->what, row->name, size, row->unit));
      take(*row, size, session.clock);
      for (; printed < rows.size() && rows[printed].done == rows[printed].tasks; ++printed) print(rows[printed]);
    }
    const auto proved = std::ranges::count_if(rows, [](const Row& row) { return row.verdict.trouble.empty(); });
    fmt::print("{} of {} algorithms proved\n", proved, rows.size());
    return static_cast<int>(proved == std::ssize(rows) ? Exit::ok : Exit::check);
  }

 private:
  std::vector<Row> all_rows() const {
    std::vector<Row> rows;
    for (const Algorithm& algorithm : all_algorithms())
      rows.push_back({name_of(algorithm.what), algorithm.name, "ranks", ranks_,
                      [&algorithm](int size) { return verdict_on(algorithm, size); }});
    for (const PipelineAlgorithm& row : all_pipeline_schedules())
      rows.push_back({"pipeline", row.name, "stages", most_stages, [&row](int size) { return verdict_on(row, size); }});
    return rows;
  }

  // Runs a task. If a row has several flaws, the flaw on the fewest ranks is reported, so larger tasks of the row are
  // skipped.
  static void take(Row& row, int size, Clock& clock) {
    ++row.done;
    if (size > row.flawed) return;
    const double started = clock.seconds();
    Verdict verdict = row.prove(size);
    row.verdict.problems += verdict.problems;
    row.verdict.seconds += clock.seconds() - started;
    if (verdict.trouble.empty()) return;
    row.verdict.trouble = std::move(verdict.trouble);
    row.flawed = size;
  }

  static void print(const Row& row) {
    const auto& [problems, trouble, seconds] = row.verdict;
    fmt::print("{:<15} {:<22} {}\n", row.what, row.name,
               trouble.empty() ? fmt::format("proved on {} problems of 1 to {} {}, {}", problems, row.tasks, row.unit,
                                             human_seconds(seconds))
                               : "NOT PROVED: " + trouble);
    std::fflush(stdout);
  }

  std::int64_t ranks_ = 64;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

}  // namespace chorale
