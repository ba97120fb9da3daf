#include "experiments/launch/layouts.hpp"

#include "experiments/plan/candidates.hpp"

namespace chorale::launch {

Layouts::Layouts(const Options& train, bool one_host) : one_host_(one_host) {
  plan_.declare(options_);
  plan_with_layout_.declare(with_layout_);
  for (const Option& option : train.all()) {
    const Option* const same = options_.find(option.name);
    const bool is_default = option.text == option.initial;
    if (!same || option.is_source || is_default || !train.why_idle(option).empty()) continue;
    if (option.name == "memory-limit") continue;  // the launch applies it to each layout
    const bool names_layout = option.whole == Whole::layout;
    is_layout_asked_ |= names_layout;
    const Setting setting{option.name, option.text, option.origin, option.source};
    with_layout_.set(setting);
    if (!names_layout) options_.set(setting);
  }
  plan_.settle();
}

std::string Layouts::asked(std::int64_t ranks) const {
  if (!is_layout_asked_) return "";
  return to_string(plan_with_layout_.layouts.choice(plan_with_layout_.flags.limits(ranks)).layout);
}

const std::vector<Possible>& Layouts::on(std::int64_t ranks) {
  if (const auto known = found_.find(ranks); known != found_.end()) return known->second;
  std::vector<Possible>& possible = found_[ranks];
  plan_.ranks = ranks;
  LayoutLimits limits = plan_.flags.limits(ranks);
  limits.one_host = one_host_;
  PlanRequest request;
  request.backends = plan_.layouts.backends();
  request.algorithms = plan_.layouts.algorithms();
  plan_.assume(request);
  for (const Layout& layout : plan::legal_layouts(
           limits, [this](const Layout& one) { return plan_.options_on(one); }, [](const Layout&) { return true; })) {
    PlanRequest here = request;
    here.layout = layout;
    here.options = plan_.options_on(layout);
    plan_.settle_prefetch(here);
    const plan::Candidate costs = plan::weigh(here);
    possible.push_back({.layout = to_string(layout),
                        .ranks = ranks,
                        .memory_bytes = costs.memory_bytes,
                        .sent_bytes = costs.sent_bytes,
                        .bubble = costs.bubble,
                        .seconds = costs.seconds});
  }
  return possible;
}

std::vector<Possible> Layouts::between(std::int64_t fewest, std::int64_t most) {
  std::vector<Possible> all;
  for (std::int64_t ranks = most; ranks >= fewest; --ranks) {
    const std::vector<Possible>& some = on(ranks);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace chorale::launch
