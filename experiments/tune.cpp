// `chorale tune`: times every algorithm over sizes on the backends given, and writes which to take where: the table that
// `auto` goes by. Each choice is printed with its reason. What the table knew of other rank counts, backends and operations
// stays.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "experiments/bench/fit.hpp"
#include "experiments/bench/options.hpp"
#include "experiments/statistics.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

using namespace bench;

class Tune final : public Command {
 public:
  Tune() {
    asked_.wanted.ops = asked_.wanted.algorithms = {"all"};
    asked_.wanted.end = 16 << 20, asked_.wanted.factor = 16;
  }

  void declare(Options& options) override { asked_.declare(options); }

  void check(const Launch&) override {
    asked_.check();
    if (asked_.tuning_file().empty())
      usage_error("there is no place for the table", "neither XDG_CACHE_HOME nor HOME is set",
                  "name one with --tuning FILE");
  }

  int run(Session& session) override {
    Sweep sweep = asked_.sweep();
    sweep.how.ceiling = false;
    const Outcome outcome = bench::run(sweep, session);
    if (session.runtime->rank() == 0 && outcome.rows > 0) write(outcome.series);
    if (outcome.rows == 0 && session.runtime->rank() == 0)
      std::fputs("nothing was measured: the table stays as it is\n", stderr);
    return static_cast<int>(outcome.rows > 0 ? Exit::ok : Exit::usage);
  }

 private:
  struct Timed {
    const Series* series;
    double seconds;
  };
  using Question = std::tuple<std::string, Collective, int, bool, std::int64_t>;

  void write(const std::vector<Series>& all) const {
    std::map<Question, std::vector<Timed>> answers;
    for (const Series& series : all) {
      const Case& row = series.row;
      if (series.wrong > 0) continue;  // a wrong result is no result
      answers[{row.backend, row.what, row.ranks, row.in_place, row.bytes()}].push_back(
          {&series, summarize(series.slowest).median});
    }
    TuningTable table = known();
    std::erase_if(table.choices, [&](const Tuned& t) {
      return std::any_of(all.begin(), all.end(), [&](const Series& series) {
        return series.row.backend == t.backend && series.row.what == t.what && series.row.ranks == t.ranks;
      });
    });
    for (auto& [question, timed] : answers) {
      table.choices.push_back(winner(timed));
      const Tuned& t = table.choices.back();
      fmt::print("{:<8}{:<15} {} ranks{}, {}: {}{}, {}\n", t.backend, name_of(t.what), t.ranks,
                 t.in_place ? ", in place" : "", human_bytes(t.bytes), t.algorithm,
                 t.chunks > 1 ? fmt::format(" in {} chunks", t.chunks) : "", t.why());
    }
    fit_prices(table, all);
    write_tuning(asked_.tuning_file(), table);
    fmt::print("written to {}\n", escape_control(asked_.tuning_file()));
  }

  // What was tuned before, if it was on this machine.
  TuningTable known() const {
    const std::string file = asked_.tuning_file();
    TuningTable table;
    if (std::filesystem::exists(file)) table = read_tuning(file);
    if (table.machine != machine_signature()) table = {machine_signature(), {}, {}};
    return table;
  }

  static Tuned winner(std::vector<Timed>& timed) {
    std::stable_sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) { return a.seconds < b.seconds; });
    const Case& row = timed[0].series->row;
    Tuned tuned{row.backend,   row.what,   row.ranks,        row.in_place, row.bytes(),
                row.algorithm, row.chunks, timed[0].seconds, "",           1};
    for (const Timed& other : timed)
      if (tuned.runner_up.empty() && other.series->row.algorithm != row.algorithm) {
        tuned.runner_up = other.series->row.algorithm;
        tuned.ratio = other.seconds / tuned.seconds;
      }
    return tuned;
  }

  static void fit_prices(TuningTable& table, const std::vector<Series>& all) {
    std::map<std::string, std::vector<Observed>> observed;
    for (const Series& series : all) {
      const Case& row = series.row;
      const auto at = [&](const Price& price) {
        return predict(row.backend, row.algorithm, row.chunks, row.problem(), size_of(row.dtype), price);
      };
      const Observed sample{{at({1, 0, 0}), at({0, 1, 0}), at({0, 0, 1})}, summarize(series.slowest).median};
      if (sample.weights[0] > 0) observed[row.backend].push_back(sample);
    }
    for (const auto& [backend, samples] : observed) {
      const Price p = fit(samples);
      const bool usable = p.alpha > 0 && p.beta > 0;  // else too few kinds of calls were timed to tell the prices apart
      if (usable) table.prices[backend] = p;
      fmt::print("{:<8}α {:.3g} µs a message, β {:.3g} ns and γ {:.3g} ns a KiB{}\n", backend, p.alpha * 1e6,
                 p.beta * 1024e9, p.gamma * 1024e9, usable ? "" : ": not kept, more operations would tell them apart");
    }
  }

  Asked asked_;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<Tune>(); }

}  // namespace chorale
