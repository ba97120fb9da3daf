#include "collectives/backends/mapped/slices.hpp"

#include <algorithm>

#include "collectives/backends/mapped/flag_page.hpp"
#include "src/base/error.hpp"

namespace chorale::mapped {
namespace {

bool is_elementwise(Collective what) {
  return what == Collective::all_reduce || what == Collective::reduce || what == Collective::broadcast;
}

Plan with_count(Plan plan, std::int64_t count) {
  plan.problem.blocks = Blocks::even(count, plan.problem.size);
  return plan;
}

}  // namespace

CallPart::CallPart(const Plan& plan, const std::vector<Schedule>& ranks)
    : problem(plan.problem), program(compile(ranks, plan.problem.rank, {})) {
  const std::size_t steps = program.actions.size();
  require(steps <= static_cast<std::size_t>(words) * bits_of_word, "{} has {} steps, too many for mapped memory", plan.words,
          steps);
  for (const Action& action : program.actions) {
    most_sources = std::max(most_sources, action.from.size());
    most_targets = std::max(most_targets, action.also_into.size() + 1);
  }
}

Slices::Slices(const Plan& plan, std::int64_t most_bytes) : plan_(plan) {
  const std::int64_t count = plan.problem.blocks.total();
  each_ = std::max<std::int64_t>(most_bytes / size_of(plan.dtype), 1);
  if (is_elementwise(plan.problem.what) && plan.problem.size > 1 && count > each_) number_ = (count + each_ - 1) / each_;
}

const CallPart& Slices::part(std::int64_t slice) {
  const std::int64_t count = std::min(each_, plan_.problem.blocks.total() - first(slice));
  auto& part = count == each_ ? full_ : tail_;
  if (!part) part = std::make_unique<const CallPart>(with_count(plan_, count));
  return *part;
}

}  // namespace chorale::mapped
