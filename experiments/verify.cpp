// `chorale verify` proves every algorithm for every number of ranks. It tries lengths around the number of ranks, blocks of
// any sizes, in place and out of place, whole and cut into chunks, on nodes of several sizes. It prints one line per
// algorithm, and a total. If a proof fails, it names rank, step and element, and exits with 3. Pipeline schedules are proved
// likewise, over stages, micro-batches and chunks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "collectives/algorithms.hpp"
#include "collectives/analysis/checker.hpp"
#include "collectives/chunking.hpp"
#include "experiments/command.hpp"
#include "parallel/pipeline/check.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t most_stages = 8, most_micro_batches = 16, most_chunks = 3;  // of pipelines

// One call on all ranks.
struct Call {
  std::vector<Problem> ranks;
  int chunks = 1;
  std::string words;
};

Call even_call(Collective what, int size, std::int64_t count, bool in_place, int chunks = 1, int per_node = 0) {
  Problem problem = Problem::even(what, count, size, size / 2, in_place);
  problem.ranks_per_node = per_node;
  Call call{{}, chunks, fmt::format("{} ranks, {} elements", size, count)};
  for (int rank = 0; rank < size; ++rank) call.ranks.push_back(problem.at(rank));
  if (chunks > 1) call.words += fmt::format(" in {} chunks", chunks);
  if (per_node > 0) call.words += fmt::format(", {} ranks a node", per_node);
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

// Whether an algorithm depends on nodes. Schedules are data, so its plans for different nodes can be compared.
bool knows_nodes(const Algorithm& algorithm, int size) {
  const auto text = [&](int per_node) {
    return algorithm.plan(even_call(algorithm.what, size, 2 * size + 1, false, 1, per_node).ranks[0]).describe();
  };
  return text(0) != text(1);
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
    const bool small = size <= 16;  // also tries longer vectors, so that every block is cut
    for (const int chunks : {2, 4, 7})
      if (small) calls.push_back(even_call(what, size, 7 * size + 3, in_place, chunks));
    if (knows_nodes(algorithm, size))
      for (const int per_node : {1, 2, 3, 4, 8, size - 1})
        for (const int chunks : {1, 3})
          if (chunks == 1 || small) calls.push_back(even_call(what, size, 2 * size + 1, in_place, chunks, per_node));
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

// The result of the proofs of one row of a table.
struct Verdict {
  std::int64_t problems = 0;  // proved
  std::string trouble;        // the first that failed
};

Verdict verdict_on_pipeline(const PipelineAlgorithm& row) {
  Verdict verdict;
  for (std::int64_t stages = 1; stages <= most_stages; ++stages)
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
  void declare(Options& options) override { options.add("ranks", ranks_, "prove for 1 to this many ranks").range(1, 256); }

  int run(Session& session) override {
    Progress progress("verify", static_cast<std::int64_t>(all_algorithms().size()) * ranks_, session.clock,
                      Progress::screen_of(stderr));
    std::size_t proved = 0;
    const auto say = [&](const char* what, const char* name, const Verdict& verdict, const std::string& of, double started) {
      proved += verdict.trouble.empty();
      fmt::print("{:<15} {:<22} {}\n", what, name,
                 verdict.trouble.empty() ? fmt::format("proved on {} problems of 1 to {}, {}", verdict.problems, of,
                                                       human_seconds(session.clock.seconds() - started))
                                         : "NOT PROVED: " + verdict.trouble);
      std::fflush(stdout);
    };
    for (const Algorithm& algorithm : all_algorithms()) {
      const double started = session.clock.seconds();
      const Verdict verdict = verdict_on(algorithm, progress);
      say(name_of(algorithm.what), algorithm.name, verdict, fmt::format("{} ranks", ranks_), started);
    }
    for (const PipelineAlgorithm& row : all_pipeline_schedules()) {
      const double started = session.clock.seconds();
      const Verdict verdict = verdict_on_pipeline(row);
      say("pipeline", row.name, verdict, fmt::format("{} stages", most_stages), started);
    }
    const std::size_t rows = all_algorithms().size() + all_pipeline_schedules().size();
    fmt::print("{} of {} algorithms proved\n", proved, rows);
    return static_cast<int>(proved == rows ? Exit::ok : Exit::check);
  }

 private:
  Verdict verdict_on(const Algorithm& algorithm, Progress& progress) {
    Verdict verdict;
    for (int size = 1; size <= ranks_; ++size) {
      progress.update(done_++, fmt::format("{} {}, {} ranks", name_of(algorithm.what), algorithm.name, size));
      for (const Call& call : calls_for(algorithm, size)) {
        if (verdict.trouble = prove(algorithm, call); !verdict.trouble.empty()) return verdict;
        ++verdict.problems;
      }
    }
    return verdict;
  }

  std::int64_t ranks_ = 64, done_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

}  // namespace chorale
