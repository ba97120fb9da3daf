// `chorale verify`: proves every algorithm for every number of ranks, on lengths around the number of ranks, in place and out of
// place. A line each, and a total; exit 3 when anything is not proved, naming rank, step and element.
#include <fmt/format.h>

#include <cstdio>

#include "collectives/algorithms.hpp"
#include "collectives/checker.hpp"
#include "experiments/command.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

class Verify final : public Command {
 public:
  void declare(Options& options) override { options.add("ranks", ranks_, "prove for 1 to so many ranks").range(1, 256); }

  int run(Session& session) override {
    Progress progress("verify", static_cast<std::int64_t>(all_algorithms().size()) * ranks_, session.clock,
                      Progress::screen_of(stderr));
    int proved = 0;
    for (const Algorithm& algorithm : all_algorithms()) {
      const double started = session.clock.seconds();
      std::int64_t problems = 0;
      std::string trouble;
      for (int size = 1; size <= ranks_ && trouble.empty(); ++size) {
        progress.update(done_++, fmt::format("{} {}, {} ranks", name_of(algorithm.what), algorithm.name, size));
        trouble = prove(algorithm, size, problems);
      }
      proved += trouble.empty();
      const std::string verdict = trouble.empty() ? fmt::format("proved on {} problems of 1 to {} ranks, {}", problems,
                                                                ranks_, human_seconds(session.clock.seconds() - started))
                                                  : "NOT PROVED: " + trouble;
      fmt::print("{:<15} {:<20} {}\n", name_of(algorithm.what), algorithm.name, verdict);
      std::fflush(stdout);
    }
    fmt::print("{} of {} algorithms proved\n", proved, all_algorithms().size());
    return static_cast<int>(proved == static_cast<int>(all_algorithms().size()) ? Exit::ok : Exit::check);
  }

 private:
  static std::string prove(const Algorithm& algorithm, int size, std::int64_t& problems) {
    for (const std::int64_t count : {0, 1, size - 1, size, 2 * size + 1})
      for (const bool in_place : {false, true}) {
        const Problem problem = Problem::even(algorithm.what, count, size, size / 2, in_place);
        if (!fits(algorithm, problem)) continue;
        const std::string trouble = find_flaw(plan_all_ranks(algorithm, problem));
        if (!trouble.empty())
          return fmt::format("{} ranks, {} elements{}: {}", size, count, in_place ? ", in place" : "", trouble);
        ++problems;
      }
    return "";
  }

  std::int64_t ranks_ = 64, done_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_verify() { return std::make_unique<Verify>(); }

}  // namespace chorale
