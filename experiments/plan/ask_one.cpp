// `chorale plan` for one layout, and for the longest sequences that it can train on.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/longest_sequence.hpp"
#include "experiments/plan/one_layout.hpp"
#include "experiments/plan/question.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/prediction/system_step.hpp"
#include "src/base/error.hpp"
#include "src/base/screen.hpp"

namespace chorale::plan {
namespace {

// Places the requested layout. `any_length`: the sequence length is not known yet, because a search will find it.
PlacedRequest place(AskedPlan& asked, bool any_length) {
  const std::int64_t world = asked.ranks ? asked.ranks : train::with_least_sizes(asked.layouts.asked()).ranks();
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

// Without --memory-limit, the limit is the memory of the machine's accelerator.
std::optional<Shortage> shortage_in(const AskedPlan& asked, const Layout& requested) {
  const auto& system = asked.system;
  const bool by_machine = system && !asked.memory_limit;
  const auto options_of = [&](const Layout& layout) {
    TrainingOptions options = asked.unplaced_options_on(layout);
    if (by_machine) options.memory.limit = static_cast<std::int64_t>(system->accelerator.memory);
    return options;
  };
  return shortage_of(requested, options_of, by_machine ? system->accelerator.name + " has" : "the limit is");
}

}  // namespace

Answer one_layout(AskedPlan& asked) {
  asked.snapshots.check();
  return [&asked, placed = place(asked, false)](Session&) {
    const std::optional<Shortage> shortage = shortage_in(asked, placed.request.layout);
    fmt::print("{}", print_layout(asked, placed, shortage));
    return fits_or_not(!shortage);
  };
}

Answer longest_sequence(AskedPlan& asked) {
  return [&asked, request = place(asked, true).request](Session&) {
    const TrainingOptions& o = request.options;
    const std::int64_t micro = std::max<std::int64_t>(asked.flags.limits(1).micro_batch, 1);
    if (asked.in_text())
      fmt::print("{}", on_screen(fmt::format(
                           "{} ranks, {:.2f} million parameters in {}, micro-batches of {}; a rank may hold {}\n\n",
                           request.layout.ranks(), static_cast<double>(o.shape.parameters()) / 1e6, name_of(o.compute),
                           micro, words_for_bytes(static_cast<double>(*asked.memory_limit)))));
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = asked.unplaced_options_on(layout);
      options.batch.micro = micro;
      return options;
    };
    fmt::print("{}", longest_sequences(request.layout, options_of, asked.format));
    return 0;
  };
}

}  // namespace chorale::plan
