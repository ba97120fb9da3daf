#include "experiments/plan/longest_sequence.hpp"

#include <fmt/format.h>

#include "experiments/plan/wording.hpp"
#include "src/base/round_up.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {
namespace {

constexpr std::int64_t most_tokens = 10'000'000;

TrainingOptions with_sequence(TrainingOptions o, const Layout& layout, std::int64_t sequence, Recompute recompute) {
  o.shape.sequence = sequence;
  o.recompute = recompute;
  const std::int64_t unit = layout.replicas() * o.batch.micro;
  o.batch.global = round_up(o.batch.global, unit);
  return o;
}

// The longest sequence that fits, in tokens; 0 if even the shortest is too long.
std::int64_t longest(const Layout& layout, const OptionsOf& options_of, Recompute recompute) {
  const CutRow& cut = token_cut_for(options_of(layout).context.cut, most_tokens, layout.context_ranks());
  const std::int64_t step = 256 * (layout.context_ranks() > 1 ? layout.context_ranks() * cut.blocks_per_rank : 1);
  const auto fits_in = [&](std::int64_t steps) {
    const auto of = [&](const Layout& l) { return with_sequence(options_of(l), l, steps * step, recompute); };
    const TrainingOptions o = of(layout);
    return steps * step <= most_tokens &&
           fits(layout, {o.shape, layout.ranks(), o.batch.global, o.batch.micro, layout.axes, o.context}) &&
           has_room(layout, of);
  };
  std::int64_t fitting = 0, beyond = 1;
  while (fits_in(beyond)) {
    fitting = beyond;
    beyond *= 2;
  }
  while (beyond - fitting > 1) {
    const std::int64_t middle = (fitting + beyond) / 2;
    (fits_in(middle) ? fitting : beyond) = middle;
  }
  return fitting * step;
}

}  // namespace

std::string longest_sequences(const Layout& layout, const OptionsOf& options_of, const std::string& format) {
  std::vector<Layout> layouts{layout};
  if (layout.context_ranks() > 1) {
    Layout whole = layout;
    whole.size_dividing(Divides::batch) *= layout.context_ranks();
    whole.size_dividing(Divides::tokens) = 1;
    layouts.push_back(whole);
  }
  const Wording as(format);
  TextTable table({"layout", "recompute", "seq-length"});
  for (const Layout& row : layouts)
    for (const std::string& name : all_names<Recompute>()) {
      const std::int64_t tokens = longest(row, options_of, named<Recompute>(name));
      table.add({to_string(row), name, tokens > 0 || as.plain() ? fmt::format("{}", tokens) : "does not fit"});
    }
  return table.print(format, screen_columns());
}

}  // namespace chorale::plan
