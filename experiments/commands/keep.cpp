// `chorale keep` holds the snapshots of a launch on one host (src/base/keeper/). A launch starts it on each host of --hosts.
//
//   mpirun --host n1 -n 1 chorale keep 2026-11-29T05-13-28-launch-485c-1234 n1
#include <fmt/format.h>

#include <memory>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/guard.hpp"
#include "src/base/keeper/keeper.hpp"

namespace chorale {
namespace {

class Keep final : public Command {
 public:
  void declare(Options& o) override {
    o.add_positional("words", words_, "the name of the launch's keepers, and the launch's name for this host")
        .words("NAME HOST");
  }

  void check(const Launch&) override {
    supervisor_ = process_environment()(supervisor_variable).value_or("");
    if (words_.size() != 2 || supervisor_.empty())
      usage_error("keep is started by a launch",
                  fmt::format("{} words, and {} {}", words_.size(), supervisor_variable,
                              supervisor_.empty() ? "is not set" : "is set"),
                  fmt::format("{} launch --hosts n0:2,n1:2 -- train …", program()));
  }

  int run(Session&) override { return Keeper::keep(words_[0], words_[1], supervisor_) ? 0 : Keeper::another_keeps; }

 private:
  std::vector<std::string> words_;
  std::string supervisor_;
};

}  // namespace

std::unique_ptr<Command> make_keep() { return std::make_unique<Keep>(); }

}  // namespace chorale
