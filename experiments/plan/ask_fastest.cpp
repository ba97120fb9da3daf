// `chorale plan --search --machine M`: the fastest configurations for training on a machine of accelerators.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/question.hpp"
#include "experiments/plan/search.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {

Answer fastest_ways(AskedPlan& asked) {
  PlanRequest plan{asked.options_on(Layout{}), Layout{}, asked.layouts.backends(), asked.layouts.algorithms()};
  asked.assume(plan);
  require_predictable({.plan = plan, .system = *asked.system});
  LayoutLimits limits = asked.flags.limits(asked.ranks);
  limits.one_host = asked.on_one_host(plan.layout);
  const std::vector<std::string>& words = asked.explain;
  if (words.size() > 2)
    usage_error("--explain puts two layouts beside each other",
                fmt::format("{} are named: {}", words.size(), join(words, ",")),
                "name one, which is put beside the fastest, or two: --explain dp8.tp8,z3");
  std::vector<Layout> explained;
  for (const std::string& word : words) {
    explained.push_back(inferred(parse_layout(word, asked.ranks), limits));
    require_fits(explained.back(), limits);
  }
  return [&asked, plan, explained](Session& session) {
    const auto rows = static_cast<std::size_t>(asked.rows(24));
    const auto& limit = asked.memory_limit;
    const double memory = asked.system->accelerator.memory;
    const SearchRequest request{.step = {.plan = plan, .system = *asked.system},
                                .ranks = asked.ranks,
                                .memory = limit ? static_cast<double>(*limit) : 0.95 * memory,
                                .capacity = limit ? static_cast<double>(*limit) : memory,
                                .micro_batch = asked.flags.limits(1).micro_batch,
                                .whole = asked.whole,
                                .wanted = [&](const Layout& l) { return asked.layouts.allows(l, ListedIn::searches); },
                                .executed = std::max<std::size_t>(12, asked.asks_for_rows() ? rows : 0),
                                .rows = rows,
                                .explained = explained,
                                .assumed = asked.assumptions()};
    fmt::print("{}", print_search(request, asked.format, session));
    return 0;
  };
}

}  // namespace chorale::plan
