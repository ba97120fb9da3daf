// `chorale plan --layout all`: the costs of every legal layout on a number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/plan/candidates.hpp"
#include "experiments/plan/question.hpp"
#include "experiments/plan/search.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/screen.hpp"

namespace chorale::plan {
namespace {

std::vector<Candidate> weigh_all(const AskedPlan& asked, const PlanRequest& like, const std::vector<Layout>& layouts,
                                 Session& session) {
  std::vector<Candidate> candidates;
  Progress progress = session.progress("plan", std::ssize(layouts));
  for (const Layout& layout : layouts) {
    progress.update(std::ssize(candidates), to_string(layout));
    PlanRequest request = like;
    request.layout = layout;
    request.options = asked.options_on(layout);
    if (asked.places) asked.places->place(request);
    asked.settle_prefetch(request);
    if (!asked.places || asked.places->suit(request)) candidates.push_back(weigh(request));
  }
  if (candidates.empty())
    usage_error("the hosts suit no legal layout",
                fmt::format("{} layouts are legal on {} ranks", layouts.size(), asked.ranks),
                "change --hosts, --backend or --context-scheme");
  return candidates;
}

std::string heading(const AskedPlan& asked, const TrainingOptions& o, std::size_t layouts, std::size_t unsuited) {
  return fmt::format(
      "{} ranks: {} legal layouts{}; {:.2f} million parameters{} in {}, {} sequences of {} tokens per step{}\n\n",
      asked.ranks, layouts, unsuited ? fmt::format(", {} of which do not suit the hosts", unsuited) : "",
      static_cast<double>(o.shape.parameters()) / 1e6, train::words_for_active(o.shape), name_of(o.compute), o.batch.global,
      o.shape.sequence,
      asked.memory_limit ? "; a rank may hold " + words_for_bytes(static_cast<double>(*asked.memory_limit)) : "");
}

Accuracy accuracy_of(const AskedPlan& asked, const Machine& machine, DType type) {
  if (asked.system) return {planner_error, origin_of(*asked.system)};
  const ComputeRates* const rates = rates_of(machine, type, static_cast<int>(asked.ranks));
  return rates ? Accuracy{std::expm1(rates->error), origin_of(machine, *rates)} : Accuracy{};
}

}  // namespace

Answer all_layouts(AskedPlan& asked) {
  if (asked.ranks == 0)
    usage_error("--layout all needs a number of ranks", "layout is all, ranks is 0", "add --ranks: --ranks 8 --layout all");
  PlanRequest like{.backends = asked.layouts.backends(), .algorithms = asked.layouts.algorithms()};
  LayoutLimits limits = asked.flags.limits(asked.ranks);
  limits.one_host = asked.on_one_host(like.layout);
  std::vector<Layout> layouts = legal_layouts(
      limits, [&](const Layout& layout) { return asked.options_on(layout); },
      [&](const Layout& layout) { return asked.layouts.allows(layout); });
  for (Layout& layout : layouts) layout.order = asked.layouts.asked().order;
  if (layouts.empty())
    usage_error("no layout is legal",
                fmt::format("{} ranks, this model and batch, and the flags given for parts of a layout", asked.ranks),
                "give fewer of --dp, --tp, --pp, --zero and --schedule, or another number of ranks");
  asked.assume(like);
  return [&asked, like, layouts](Session& session) {
    const std::vector<Candidate> candidates = weigh_all(asked, like, layouts, session);
    const TrainingOptions options = asked.options_on(layouts.back());
    const Choices choices = in_order(candidates, asked.memory_limit.value_or(0));
    if (asked.in_text())
      fmt::print("{}", on_screen(heading(asked, options, layouts.size(), layouts.size() - candidates.size())));
    fmt::print("{}", table_of(choices, asked.format, asked.rows(24), asked.assumptions(),
                              accuracy_of(asked, like.selector->machine(), options.compute)));
    return fits_or_not(std::ranges::any_of(choices.rows, &Candidate::fits));
  };
}

}  // namespace chorale::plan
