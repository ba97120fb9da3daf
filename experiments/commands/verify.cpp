// `chorale verify` proves that every collective algorithm is correct on 1 to 64 ranks (--ranks). Positional arguments select
// the algorithms: `verify all_reduce ring bruck`, `verify pipeline`. With p ranks, verify tries vectors of 0, 1, p−1, p and
// 2p+1 elements and blocks of unequal sizes. For p up to 16, it also tries 7p+3 elements. Calls are in place and out of
// place, schedules have one or several chunks, and ranks are on one or several hosts. With --hosts 2,3,1, verify tries only
// these hosts. The command prints one line per algorithm, and a total. If a proof fails, verify names rank, step and
// element, and exits with 3. Pipeline schedules are proved in the same way, for many numbers of stages, micro-batches and
// chunks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <random>

#include <chorale/algorithm.hpp>
#include "collectives/schedule/chunking.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/hosts_option.hpp"
#include "experiments/common/random_order.hpp"
#include "parallel/pipeline/check.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The largest sizes for which pipeline schedules are proved.
constexpr std::int64_t most_stages = 8, most_micro_batches = 16, most_chunks = 3;

// One collective call: the problem of every rank.
struct CallOnAllRanks {
  std::vector<Problem> ranks;
  int chunks = 1;
  std::string words;
};

CallOnAllRanks even_call(Collective what, int size, std::int64_t count, bool in_place, int chunks,
                         const std::vector<int>& hosts) {
  const Problem problem = Problem::even(what, count, size, size / 2, in_place, hosts);
  CallOnAllRanks call{{}, chunks, fmt::format("{} ranks, {} elements", size, count)};
  for (int rank = 0; rank < size; ++rank) call.ranks.push_back(problem.at(rank));
  if (chunks > 1) call.words += fmt::format(" in {} chunks", chunks);
  if (!hosts.empty()) call.words += fmt::format(" on hosts {}", fmt::join(hosts, ","));
  return call;
}

// Irregular blocks of 0 to 3 elements.
CallOnAllRanks uneven_call(Collective what, int size, bool in_place, const std::vector<int>& hosts) {
  const auto count = [](int a, int b) -> std::int64_t { return (7 * a * a + 3 * a * b + 5 * b) % 11 % 4; };
  std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(size));
  for (int a = 0; a < size; ++a)
    for (int b = 0; b < size; ++b) counts[static_cast<std::size_t>(a)].push_back(count(a, b));
  CallOnAllRanks call{{}, 1, fmt::format("{} ranks, uneven blocks", size)};
  if (!hosts.empty()) call.words += fmt::format(" on hosts {}", fmt::join(hosts, ","));
  if (what == Collective::all_to_all) {
    call.ranks = Problem::exchange(counts, in_place, hosts);
    return call;
  }
  const Problem problem{what, 0, size, size / 2, Blocks(counts.back()), in_place, {}, hosts};
  for (int rank = 0; rank < size; ++rank) call.ranks.push_back(problem.at(rank));
  return call;
}

// Tries three kinds of placement: hosts with equal numbers of consecutive ranks, hosts with 1, 2, 3, … ranks, and ranks that
// are placed on the hosts round robin. Many ranks get fewer placements, because their proofs take long.
std::vector<std::vector<int>> placements(int size) {
  std::vector<std::vector<int>> all;
  const auto add = [&](const auto& host_of) {
    std::vector<int>& hosts = all.emplace_back();
    for (int rank = 0; rank < size; ++rank) hosts.push_back(host_of(rank));
  };
  for (const int each : {1, 2, 3, 8})
    if (size <= 16 || each == 8) add([&](int rank) { return rank / each; });
  for (const int count : {2, 3})
    if (size <= 16 || count == 3) add([&](int rank) { return rank % count; });
  add([](int rank) { return static_cast<int>(std::sqrt(2 * rank + 0.25) - 0.5); });
  return all;
}

// Whether an algorithm's schedule depends on where the ranks are. Schedules are data, so two schedules can be compared.
bool knows_hosts(const Algorithm& algorithm, int size) {
  const auto text = [&](const std::vector<int>& hosts) {
    return algorithm.plan(even_call(algorithm.what, size, 2 * size + 1, false, 1, hosts).ranks[0]).describe();
  };
  return text({}) != text(placements(size).back());
}

// `hosts` has the hosts of --hosts. Without --hosts, several placements are tried for each algorithm that depends on the
// placement.
std::vector<CallOnAllRanks> calls_for(const Algorithm& algorithm, int size, const std::vector<int>& hosts) {
  const Collective what = algorithm.what;
  std::vector<CallOnAllRanks> calls;
  for (const bool in_place : {false, true}) {
    if (what == Collective::barrier) {
      calls.push_back(even_call(what, size, 1, in_place, 1, hosts));
      continue;
    }
    for (const std::int64_t count : {0, 1, size - 1, size, 2 * size + 1})
      calls.push_back(even_call(what, size, count, in_place, 1, hosts));
    calls.push_back(uneven_call(what, size, in_place, hosts));
    calls.push_back(even_call(what, size, 2 * size + 1, in_place, in_place ? 2 : 3, hosts));
    const bool small = size <= 16;  // on few ranks, longer vectors are also tried, so that every block is divided
    for (const int chunks : {2, 4, 7})
      if (small) calls.push_back(even_call(what, size, 7 * size + 3, in_place, chunks, hosts));
    if (!hosts.empty() || !knows_hosts(algorithm, size)) continue;
    for (const std::vector<int>& placement : placements(size)) {
      for (const int chunks : {1, 3})
        if (chunks == 1 || small) calls.push_back(even_call(what, size, 2 * size + 1, in_place, chunks, placement));
      calls.push_back(uneven_call(what, size, in_place, placement));
    }
  }
  const auto does_not_fit = [&](const CallOnAllRanks& call) {
    return !std::all_of(call.ranks.begin(), call.ranks.end(), [&](const Problem& p) { return fits(algorithm, p); });
  };
  std::erase_if(calls, does_not_fit);
  return calls;
}

std::string trouble_with(const Algorithm& algorithm, const CallOnAllRanks& call) {
  std::vector<Schedule> schedules = plan_all_ranks(algorithm, call.ranks);
  if (call.chunks > 1)
    for (Schedule& schedule : schedules) schedule = cut_into_chunks(schedule, call.chunks);
  const std::string trouble = find_flaw(schedules);
  if (trouble.empty()) return "";
  return fmt::format("{}{}: {}", call.words, call.ranks[0].in_place ? ", in place" : "", trouble);
}

// The outcome of several proofs of the same algorithm. Two verdicts on an algorithm can be combined, in any order.
struct RowVerdict {
  std::int64_t problems = 0;  // number of problems that were proved
  std::string trouble;        // the flaw that was found; "" if there is none
  double seconds = 0;
};

// The proof of one row: a collective algorithm or a pipeline schedule. The proof has a task for each size (number of ranks
// or stages), which proves all problems of that size.
struct VerifiedRow {
  const char* what;
  const char* name;
  const char* unit;
  std::int64_t first, last;  // the smallest and the largest size
  std::function<RowVerdict(int size)> prove;
  RowVerdict verdict = {};
  std::int64_t left = last - first + 1, flawed = last + 1;  // left: remaining tasks; flawed: smallest size with a flaw
};

// Returns the words that the command accepts, without duplicates: collectives and `pipeline`, and the names of their
// algorithms and schedules.
std::vector<std::string> words_of(const std::vector<VerifiedRow>& rows, const char* VerifiedRow::*column) {
  std::vector<std::string> words;
  for (const VerifiedRow& row : rows)
    if (!std::ranges::count(words, row.*column)) words.emplace_back(row.*column);
  return words;
}

// Keeps the rows that the positional arguments `words` name. `verify all_reduce broadcast` names two collectives, `verify
// ring` names every ring algorithm, and `verify all_reduce ring direct` names two algorithms of one collective.
void keep_named(std::vector<VerifiedRow>& rows, const std::vector<std::string>& words) {
  const std::vector<std::string> collectives = words_of(rows, &VerifiedRow::what),
                                 algorithms = words_of(rows, &VerifiedRow::name);
  const auto is_one_of = [](const std::vector<std::string>& names) {
    return [&names](const std::string& word) { return std::ranges::count(names, word) > 0; };
  };
  std::vector<std::string> wanted, names;  // collectives; algorithms and schedules
  std::ranges::copy_if(words, std::back_inserter(wanted), is_one_of(collectives));
  std::ranges::copy_if(words, std::back_inserter(names), std::not_fn(is_one_of(collectives)));
  if (!wanted.empty()) std::erase_if(rows, [&](const VerifiedRow& row) { return !is_one_of(wanted)(row.what); });
  const std::vector<std::string> left = words_of(rows, &VerifiedRow::name);
  for (const std::string& name : names) {
    if (is_one_of(left)(name)) continue;
    if (is_one_of(algorithms)(name))
      usage_error(fmt::format("{} has no algorithm \"{}\"", either(wanted), name), "there are " + join(left, ", "),
                  "name some of these, or another collective");
    std::vector<std::string> known = wanted.empty() ? collectives : std::vector<std::string>{};
    known.insert(known.end(), left.begin(), left.end());
    usage_error(fmt::format("no collective or algorithm \"{}\"", name), "there are " + join(known, ", "),
                did_you_mean(name, known, "name some of these"));
  }
  if (!names.empty()) std::erase_if(rows, [&](const VerifiedRow& row) { return !is_one_of(names)(row.name); });
}

RowVerdict verdict_on(const Algorithm& algorithm, int size, const std::vector<int>& hosts) {
  RowVerdict verdict;
  for (const CallOnAllRanks& call : calls_for(algorithm, size, hosts)) {
    if (verdict.trouble = trouble_with(algorithm, call); !verdict.trouble.empty()) return verdict;
    ++verdict.problems;
  }
  return verdict;
}

RowVerdict verdict_on(const PipelineAlgorithm& row, std::int64_t stages) {
  RowVerdict verdict;
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
    const std::vector<VerifiedRow> rows = all_rows();
    std::vector<std::string> names = words_of(rows, &VerifiedRow::what);
    for (std::string& name : words_of(rows, &VerifiedRow::name)) names.push_back(std::move(name));
    options.add_positional("subjects", words_, "prove only these collectives, algorithms or schedules; default: all")
        .words("COLLECTIVE… ALGORITHM…")
        .suggest(names);
    options.add("ranks", ranks_, "prove for every number of ranks up to this").range(1, most_ranks_shown);
    hosts_.declare(options, "prove collectives on hosts with so many ranks, such as 2,3,1; default: on several placements");
  }

  void check(const Launch&) override {
    hosts_.resolve(ranks_);
    rows_ = all_rows();
    keep_named(rows_, words_);
    if (hosts_.given()) std::erase_if(rows_, [](const VerifiedRow& row) { return row.what == pipeline; });
    if (rows_.empty())
      usage_error("a pipeline has no hosts", fmt::format("--hosts was given for \"{}\"", join(words_, " ")),
                  "leave out --hosts, or name a collective");
  }

  // A proof on 64 ranks takes thousands of times as long as a proof on 2 ranks. Tasks therefore run in random order: the
  // finished tasks are then a fair sample, from which the progress line estimates the remaining time. Rows are printed in
  // the order of the tables.
  int run(Session& session) override {
    std::vector<std::pair<VerifiedRow*, int>> tasks;
    for (VerifiedRow& row : rows_)
      for (auto size = static_cast<int>(row.first); size <= row.last; ++size) tasks.emplace_back(&row, size);
    Progress progress = session.progress("verify", std::ssize(tasks));
    std::mt19937_64 random(1);
    std::int64_t done = 0;
    std::size_t printed = 0;
    for (const std::size_t t : random_order(tasks.size(), random)) {
      auto& [row, size] = tasks[t];
      progress.update(done++, fmt::format("{} {}, {} {}", row->what, row->name, size, row->unit));
      take(*row, size, session.clock);
      for (; printed < rows_.size() && rows_[printed].left == 0; ++printed) print(rows_[printed]);
    }
    const auto proved = std::ranges::count_if(rows_, [](const VerifiedRow& row) { return row.verdict.trouble.empty(); });
    fmt::print("{} of {} algorithms proved\n", proved, rows_.size());
    return static_cast<int>(proved == std::ssize(rows_) ? Exit::ok : Exit::check);
  }

 private:
  std::vector<VerifiedRow> all_rows() const {
    std::vector<VerifiedRow> rows;
    for (const Algorithm& algorithm : all_algorithms())
      rows.push_back({name_of(algorithm.what), algorithm.name, "ranks", hosts_.given() ? ranks_ : 1, ranks_,
                      [this, &algorithm](int size) { return verdict_on(algorithm, size, hosts_.topology().host_of); }});
    for (const PipelineAlgorithm& row : all_pipeline_schedules())
      rows.push_back({pipeline, row.name, "stages", 1, most_stages, [&row](int size) { return verdict_on(row, size); }});
    return rows;
  }

  // Runs a task. A row reports only the flaw with the smallest size. Tasks with a larger size than a known flaw are
  // therefore skipped.
  static void take(VerifiedRow& row, int size, Clock& clock) {
    --row.left;
    if (size > row.flawed) return;
    const double started = clock.seconds();
    RowVerdict verdict = row.prove(size);
    row.verdict.problems += verdict.problems;
    row.verdict.seconds += clock.seconds() - started;
    if (verdict.trouble.empty()) return;
    row.verdict.trouble = std::move(verdict.trouble);
    row.flawed = size;
  }

  static void print(const VerifiedRow& row) {
    const auto& [problems, trouble, seconds] = row.verdict;
    fmt::print("{:<15} {:<22} {}\n", row.what, row.name,
               trouble.empty() ? fmt::format("proved on {} problems of {}{} {}, {}", problems, row.first == 1 ? "1 to " : "",
                                             row.last, row.unit, human_seconds(seconds))
                               : "NOT PROVED: " + trouble);
    std::fflush(stdout);
  }

  static constexpr const char* pipeline = "pipeline";
  std::vector<std::string> words_;
  std::vector<VerifiedRow> rows_;
  std::int64_t ranks_ = 64;
  HostsOption hosts_;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

}  // namespace chorale
