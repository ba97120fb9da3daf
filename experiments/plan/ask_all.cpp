// `chorale plan --layout all`: the costs of every legal layout on a number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/plan/candidates.hpp"
#include "experiments/plan/question.hpp"
#include "experiments/plan/search.hpp"
#include "experiments/plan/wording.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/screen.hpp"

namespace chorale::plan {
namespace {

class AllLayouts final : public Question {
 public:
  explicit AllLayouts(AskedPlan& asked) : asked_(asked) {}

  void check() override {
    if (asked_.ranks == 0)
      usage_error("--layout all needs a number of ranks", "layout is all, ranks is 0",
                  "add --ranks: --ranks 8 --layout all");
    request_.backends = asked_.layouts.backends();
    request_.algorithms = asked_.layouts.algorithms();
    LayoutLimits limits = asked_.flags.limits(asked_.ranks);
    limits.one_host = asked_.on_one_host(request_.layout);
    layouts_ = legal_layouts(
        limits, [this](const Layout& layout) { return asked_.options_on(layout); },
        [this](const Layout& layout) { return asked_.layouts.allows(layout); });
    for (Layout& layout : layouts_) layout.order = asked_.layouts.asked().order;
    if (layouts_.empty())
      usage_error("no layout is legal",
                  fmt::format("{} ranks, this model and batch, and the flags given for parts of a layout", asked_.ranks),
                  "give fewer of --dp, --tp, --pp, --zero and --schedule, or another number of ranks");
    asked_.assume(request_);
  }

  int answer(Session& session) override {
    const std::vector<Candidate> candidates = weigh_all(session);
    const std::size_t unsuited = layouts_.size() - candidates.size();
    const Choices choices = in_order(candidates, asked_.memory_limit.value_or(0));
    if (asked_.in_text()) fmt::print("{}", on_screen(heading(unsuited)));
    fmt::print("{}", table_of(choices, asked_.format, asked_.rows(24), asked_.assumptions(), error_of_predictions()));
    return fits_or_not(std::ranges::any_of(choices.rows, &Candidate::fits));
  }

 private:
  std::vector<Candidate> weigh_all(Session& session) {
    std::vector<Candidate> candidates;
    Progress progress("plan", static_cast<std::int64_t>(layouts_.size()), session.clock,
                      Progress::screen_at(session.log_level));
    for (const Layout& layout : layouts_) {
      progress.update(static_cast<std::int64_t>(candidates.size()), to_string(layout));
      request_.layout = layout;
      request_.options = asked_.options_on(layout);
      PlanRequest request = request_;
      if (asked_.places) asked_.places->place(request);
      asked_.settle_prefetch(request);
      if (!asked_.places || asked_.places->suit(request)) candidates.push_back(weigh(request));
    }
    if (candidates.empty())
      usage_error("the hosts suit no legal layout",
                  fmt::format("{} layouts are legal on {} ranks", layouts_.size(), asked_.ranks),
                  "change --hosts, --backend or --context-scheme");
    return candidates;
  }

  std::string heading(std::size_t unsuited) const {
    const TrainingOptions& o = request_.options;
    return fmt::format(
        "{} ranks: {} legal layouts{}; {:.2f} million parameters{} in {}, {} sequences of {} tokens per step{}\n\n",
        asked_.ranks, layouts_.size(), unsuited ? fmt::format(", {} of which do not suit the hosts", unsuited) : "",
        static_cast<double>(o.shape.parameters()) / 1e6, train::words_for_active(o.shape), name_of(o.compute),
        o.batch.global, o.shape.sequence,
        asked_.memory_limit ? "; a rank may hold " + words_for_bytes(static_cast<double>(*asked_.memory_limit)) : "");
  }

  double error_of_predictions() const {
    if (asked_.system) return planner_error;
    double most = 0;  // the largest error of the compute rates for this type
    for (const ComputeRates& rates : request_.selector->machine().computes)
      if (rates.type == name_of(request_.options.compute)) most = std::max(most, std::expm1(rates.error));
    return most;
  }

  AskedPlan& asked_;
  PlanRequest request_;  // request for the layout whose costs are being computed
  std::vector<Layout> layouts_;
};

}  // namespace

QuestionPointer all_layouts(AskedPlan& asked) { return std::make_unique<AllLayouts>(asked); }

}  // namespace chorale::plan
