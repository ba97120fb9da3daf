// `chorale show COLLECTIVE ALGORITHM`: the schedule of every rank, a line a step, and what each of them sends.
#include <fmt/format.h>

#include "collectives/algorithms.hpp"
#include "experiments/command.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

class Show final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("algorithm", words_, "which collective, and which algorithm for it")
        .words("COLLECTIVE ALGORITHM");
    options.add("ranks", ranks_, "how many ranks").range(1, 256);
    options.add("count", count_, "elements of the whole vector; 0 for two a rank").range(0, 1e15);
    options.add("root", root_, "of a broadcast or reduce").range(0, 255);
    options.add("in-place", in_place_, "input and output are one buffer");
  }

  void check() override {
    if (words_.size() != 2)
      usage_error("show wants a collective and an algorithm", fmt::format("{} words were given", words_.size()),
                  "for example: chorale show all_reduce ring");
    if (root_ >= ranks_)
      usage_error("the root is no rank", fmt::format("root {} of {} ranks", root_, ranks_), "choose 0 to ranks − 1");
    std::vector<std::string> known;
    for (const Algorithm& algorithm : all_algorithms()) {
      known.push_back(fmt::format("{} {}", name_of(algorithm.what), algorithm.name));
      if (known.back() == join(words_, " ")) algorithm_ = &algorithm;
    }
    if (algorithm_ && !fits(*algorithm_, problem()))
      usage_error(fmt::format("{} does not fit", join(words_, " ")), fmt::format("{} ranks", ranks_),
                  "it wants a power of two of them");
    if (algorithm_) return;
    const std::string near = nearest(join(words_, " "), known);
    usage_error(fmt::format("no algorithm \"{}\"", join(words_, " ")), "there are " + join(known, ", "),
                near.empty() ? "name one of these" : fmt::format("did you mean \"{}\"?", near));
  }

  int run(Session&) override {
    fmt::print("{} {}: {}\n{} ranks, {} elements{}\n", name_of(algorithm_->what), algorithm_->name, algorithm_->about,
               ranks_, problem().blocks.total(), in_place_ ? ", in place" : "");
    for (const Schedule& schedule : plan_all_ranks(*algorithm_, problem()))
      fmt::print("\nrank {}, sends {} elements\n{}", schedule.problem().rank, schedule.elements_sent(), schedule.describe());
    return 0;
  }

 private:
  Problem problem() const {
    const int size = static_cast<int>(ranks_);
    return Problem::even(algorithm_->what, count_ ? count_ : 2 * ranks_, size, static_cast<int>(root_), in_place_);
  }

  std::vector<std::string> words_;
  std::int64_t ranks_ = 4, count_ = 0, root_ = 0;
  bool in_place_ = false;
  const Algorithm* algorithm_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> make_show() { return std::make_unique<Show>(); }

}  // namespace chorale
