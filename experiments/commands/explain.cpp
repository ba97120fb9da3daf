// `chorale explain runs/latest` names the dead or hung rank that ended a run, and the last calls of every rank. The command
// reads the files that the guard processes of the hosts wrote when the run ended (src/base/guard/).
#include <fmt/format.h>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

class Explain final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("run", runs_, "the folder of a run; default: runs/latest").words("DIR");
    options.add("calls", calls_, "show so many calls of each rank").range(0, FlightPage::kept);
  }

  void check(const Launch&) override {
    if (runs_.size() > 1)
      usage_error("only one run can be explained", fmt::format("{} were given: {}", runs_.size(), join(runs_, ", ")),
                  fmt::format("{} explain {}", program(), runs_[0]));
    dumps_ = read_dumps(runs_.empty() ? "runs/latest" : runs_[0]);
  }

  int run(Session&) override {
    for (const std::string& line : split(dumps_.lost, '\n'))
      if (!line.empty()) fmt::print("{}\n", escape_control(line));
    for (const SeenRank& rank : dumps_.ranks) {
      const FlightPage& page = rank.page;
      fmt::print("\nrank {} on {}: {}\n", page.rank, escape_control(fixed_text(page.host)), escape_control(in_words(rank)));
      std::int64_t left = calls_;
      for (const std::string& line : newest_calls(page)) {
        if (left-- == 0) break;
        fmt::print("  {}\n", escape_control(line));
      }
    }
    if (dumps_.ranks[0].page.size > static_cast<int>(dumps_.ranks.size()))
      fmt::print("\n{} of {} ranks are known: look into the folder flight/ of the run on the other hosts\n",
                 dumps_.ranks.size(), dumps_.ranks[0].page.size);
    return 0;
  }

 private:
  std::vector<std::string> runs_;
  std::int64_t calls_ = 5;
  GuardWords dumps_;
};

}  // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

}  // namespace chorale
