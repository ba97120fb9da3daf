#include "experiments/prove/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <chorale/algorithm.hpp>
#include "experiments/prove/variations.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"

namespace chorale::prove {
namespace {

bool is_all(const std::vector<std::string>& words) { return words == std::vector<std::string>{"all"}; }

LayoutLimits limits_of(const Case& row) {
  return {row.options.shape,       row.layout.ranks(), row.options.batch.global,
          row.options.batch.micro, &all_axes(),        row.options.context};
}

bool possible(const Case& row) { return fits(row.layout, limits_of(row)); }

Case on(const Layout& layout, const Case& plain, std::int64_t micro_batch) {
  Case row = plain;
  row.layout = layout;
  if (layout.order.empty()) row.layout.order = plain.layout.order;
  row.options.batch.micro = micro_batch;
  return row;
}

// Returns the case of a layout with a suitable micro-batch size. Three sizes are tried, and the first that fits is taken:
// the requested size, a replica's share of the batch, and 1. With a pipeline, the second size is 2, so that a step has
// several micro-batches.
Case suited(const Layout& layout, const Case& plain) {
  const std::int64_t asked = plain.options.batch.micro, batch = plain.options.batch.global;
  std::vector<std::int64_t> sizes{layout.stages() > 1 ? 2 : batch / layout.replicas(), 1};
  if (asked < batch) sizes.insert(sizes.begin(), asked);  // the default is the whole batch
  for (const std::int64_t size : sizes)
    if (const Case row = on(layout, plain, size); possible(row)) return row;
  return on(layout, plain, 1);
}

Layout layout_named(const std::string& word, std::int64_t world, const Case& plain) {
  const Layout layout = parse_layout(word, 0);
  return layout.ranks() > 0 ? layout : inferred(layout, {plain.options.shape, world, plain.options.batch.global});
}

bool accepts(const Case& row) try {
  check(row.options, row.layout);
  return true;
} catch (const Error&) {
  return false;
}

// Returns the case with the variation applied. Returns nullopt if the case has one rank, or if the variation does not fit
// the case.
std::optional<Case> changed(Case row, const Variation& variation) {
  if (row.layout.ranks() == 1 || !variation.change(row) || !possible(row) || !accepts(row)) return {};
  row.variation = variation.words;
  return row;
}

std::vector<Layout> few_with_every_strategy(std::int64_t world) {
  std::vector<Layout> layouts;
  for (const char* word : {"dp2.z3", "dp2.tp2.z2.sp", "dp2.pp2.z1", "dp1.tp2.pp2", "dp2.tp2.pp2.z1.sp", "dp2.cp2.z1",
                           "dp1.tp2.cp2", "dp1.pp2.cp2", "dp2.rep2.z3"})
    if (const Layout layout = parse_layout(word, 0); layout.ranks() <= world) layouts.push_back(layout);
  return layouts;
}

}  // namespace

std::vector<Case> cases_of(const std::vector<std::string>& words, std::int64_t world, const Case& plain) {
  std::vector<Case> cases;
  if (is_all(words)) {
    for (std::int64_t ranks = 1; ranks <= world; ++ranks)
      for (const Layout& layout : all_layouts({plain.options.shape, ranks, plain.options.batch.global}))
        cases.push_back(suited(layout, plain));
    return cases;
  }
  for (const std::string& word : words) {
    const Case row = suited(layout_named(word, world, plain), plain);
    if (row.layout.ranks() > world)
      usage_error("there are too few ranks",
                  fmt::format("{} needs {} ranks, {} were started", word, row.layout.ranks(), world),
                  fmt::format("start with mpirun -n {}", row.layout.ranks()));
    require_fits(row.layout, limits_of(row));
    cases.push_back(row);
  }
  return cases;
}

std::vector<Case> varied(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                         const std::vector<std::string>& what) {
  std::vector<Case> bases, rows;
  if (is_all(words))
    for (const Layout& layout : few_with_every_strategy(world)) bases.push_back(suited(layout, plain));
  else
    bases = cases_of(words, world, plain);
  for (const std::string& kind : what)
    for (const Variation& variation : variations_of(kind, plain))
      for (const Case& base : bases) {
        const std::optional<Case> row = changed(base, variation);
        const auto same_order = [&](const Case& other) {
          return other.variation.starts_with("order") && other.layout == row->layout;
        };
        if (row && !(kind == "order" && std::ranges::any_of(rows, same_order))) rows.push_back(*row);
      }
  return rows;
}

std::vector<Case> combined(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                           const std::vector<std::string>& what) {
  if (what.empty()) return {};
  const std::vector<Variation> every = combinations(what, plain), few = pairwise(what, plain);
  std::vector<Case> rows;
  for (const Case& base : cases_of(words, world, plain))
    for (const Variation& variation : base.layout.ranks() <= most_ranks_of_products ? every : few)
      if (const std::optional<Case> row = changed(base, variation)) rows.push_back(*row);
  return rows;
}

void require_algorithms(const Case& row) {
  // The plan of rank 0 checks the collectives of a step on every axis. The all-gather of fingerprints is checked here.
  plan_rank({.options = row.options, .layout = row.layout, .algorithms = row.algorithms}, 0);
  const auto ranks = static_cast<int>(row.layout.ranks());
  const Algorithm* const exchange = find_algorithm(Collective::all_gather, choice_for(row.algorithms, "world"));
  if (exchange && !fits(*exchange, Problem::even(Collective::all_gather, ranks, ranks)))
    usage_error(fmt::format("all_gather {} does not fit", exchange->name),
                fmt::format("{}: axis world has {} ranks", to_string(row.layout), ranks),
                "choose another algorithm, or auto");
}

}  // namespace chorale::prove
