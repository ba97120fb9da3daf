// `chorale plan --search --machine M`: the fastest configurations for training on a machine of accelerators.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/question.hpp"
#include "experiments/plan/search.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

class FastestWays final : public Question {
 public:
  explicit FastestWays(AskedPlan& asked) : asked_(asked) {}

  void check() override {
    request_ = {asked_.options_on(Layout{}), Layout{}, asked_.layouts.backends(), asked_.layouts.algorithms()};
    asked_.assume(request_);
    require_predictable({.plan = request_, .system = *asked_.system});
    LayoutLimits limits = asked_.flags.limits(asked_.ranks);
    limits.one_host = asked_.on_one_host(request_.layout);
    const std::vector<std::string>& words = asked_.explain;
    if (words.size() > 2)
      usage_error("--explain puts two layouts beside each other",
                  fmt::format("{} are named: {}", words.size(), join(words, ",")),
                  "name one, which is put beside the fastest, or two: --explain dp8.tp8,z3");
    for (const std::string& word : words) {
      explained_.push_back(inferred(parse_layout(word, asked_.ranks), limits));
      require_fits(explained_.back(), limits);
    }
  }

  int answer(Session& session) override {
    const auto rows = static_cast<std::size_t>(asked_.rows(24));
    const auto& limit = asked_.memory_limit;
    const double memory = asked_.system->accelerator.memory;
    const SearchRequest request{.step = {.plan = request_, .system = *asked_.system},
                                .ranks = asked_.ranks,
                                .memory = limit ? static_cast<double>(*limit) : 0.95 * memory,
                                .capacity = limit ? static_cast<double>(*limit) : memory,
                                .micro_batch = asked_.flags.limits(1).micro_batch,
                                .whole = asked_.whole,
                                .wanted = [this](const Layout& l) { return asked_.layouts.allows(l, ListedIn::searches); },
                                .executed = std::max<std::size_t>(12, asked_.asks_for_rows() ? rows : 0),
                                .rows = rows,
                                .explained = explained_,
                                .assumed = asked_.assumptions()};
    fmt::print("{}", print_search(request, asked_.format, session));
    return 0;
  }

 private:
  AskedPlan& asked_;
  PlanRequest request_;
  std::vector<Layout> explained_;
};

}  // namespace

QuestionPointer fastest_ways(AskedPlan& asked) { return std::make_unique<FastestWays>(asked); }

}  // namespace chorale::plan
