// `chorale plan` for one layout, and for the longest sequences that it can train on.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/longest_sequence.hpp"
#include "experiments/plan/one_layout.hpp"
#include "experiments/plan/question.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/planner/step.hpp"
#include "src/base/error.hpp"
#include "src/base/screen.hpp"

namespace chorale::plan {
namespace {

class OneLayoutQuestion final : public Question {
 public:
  explicit OneLayoutQuestion(AskedPlan& asked) : asked_(asked) {}

  void check() override {
    asked_.snapshots.check();
    placed_ = place(asked_, false);
  }

  int answer(Session&) override {
    const std::optional<Shortage> shortage = this->shortage();
    const auto& system = asked_.system;
    const double limit = asked_.memory_limit ? static_cast<double>(*asked_.memory_limit)
                         : system            ? system->accelerator.memory
                                             : 0;
    fmt::print("{}", print_layout({.request = placed_.request,
                                   .system = system,
                                   .hosts = asked_.places ? &*asked_.places : nullptr,
                                   .whole = asked_.whole,
                                   .snapshots = asked_.snapshots,
                                   .timeline = asked_.timeline,
                                   .choices = placed_.choices,
                                   .assumed = asked_.assumptions(),
                                   .limit = limit,
                                   .shortage = shortage},
                                  asked_.format));
    return fits_or_not(!shortage);
  }

 private:
  // Without --memory-limit, the limit is the memory of the machine's accelerator.
  std::optional<Shortage> shortage() const {
    const auto& system = asked_.system;
    const bool by_machine = system && !asked_.memory_limit;
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = asked_.unplaced_options_on(layout);
      if (by_machine) options.memory.limit = static_cast<std::int64_t>(system->accelerator.memory);
      return options;
    };
    return shortage_of(placed_.request.layout, options_of, by_machine ? system->accelerator.name + " has" : "the limit is");
  }

  AskedPlan& asked_;
  PlacedRequest placed_;
};

class LongestSequenceQuestion final : public Question {
 public:
  explicit LongestSequenceQuestion(AskedPlan& asked) : asked_(asked) {}

  void check() override { request_ = place(asked_, true).request; }

  int answer(Session&) override {
    const TrainingOptions& o = request_.options;
    const std::int64_t micro = std::max<std::int64_t>(asked_.flags.limits(1).micro_batch, 1);
    if (asked_.in_text())
      fmt::print("{}", on_screen(fmt::format(
                           "{} ranks, {:.2f} million parameters in {}, micro-batches of {}; a rank may hold {}\n\n",
                           request_.layout.ranks(), static_cast<double>(o.shape.parameters()) / 1e6, name_of(o.compute),
                           micro, words_for_bytes(static_cast<double>(*asked_.memory_limit)))));
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = asked_.unplaced_options_on(layout);
      options.batch.micro = micro;
      return options;
    };
    fmt::print("{}", longest_sequences(request_.layout, options_of, asked_.format));
    return 0;
  }

 private:
  AskedPlan& asked_;
  PlanRequest request_;
};

}  // namespace

PlacedRequest place(AskedPlan& asked, bool any_length) {
  Layout least = asked.layouts.asked();  // gives the number of ranks if --ranks is not given
  for (std::int64_t& size : least.sizes) size = std::max<std::int64_t>(size, 1);
  const std::int64_t world = asked.ranks ? asked.ranks : least.ranks();
  const train::ParallelChoice choice = asked.layouts.choice(asked.flags.limits(world));
  PlanRequest request{asked.options_on(choice.layout), choice.layout, choice.backends, choice.algorithms};
  LayoutLimits limits = asked.flags.limits(request.options, world);
  limits.one_host = asked.on_one_host(request.layout);
  if (any_length) limits.shape.sequence = 1 << 20;  // the search finds lengths that fit
  require_fits(request.layout, limits);
  asked.assume(request);
  if (asked.system) {
    require_predictable({.plan = request, .system = *asked.system});
    if (!limits.one_host) request.hosts = hosts_of(*asked.system, request.layout.ranks());
  }
  std::string why_order;
  if (asked.places) {
    why_order = asked.places->place(request);
    asked.places->require_suited(request);
  }
  std::string why_prefetch = asked.settle_prefetch(request);
  return {std::move(request), {std::move(why_order), std::move(why_prefetch)}};
}

QuestionPointer one_layout(AskedPlan& asked) { return std::make_unique<OneLayoutQuestion>(asked); }
QuestionPointer longest_sequence(AskedPlan& asked) { return std::make_unique<LongestSequenceQuestion>(asked); }

}  // namespace chorale::plan
