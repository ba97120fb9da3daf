#include "parallel/experts/experts.hpp"

#include <algorithm>

#include "layers/context.hpp"
#include "src/base/options.hpp"
#include "src/math/routing.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// Maps the rows of `here` between two orders. Rows arrive in blocks. All rows of a block come from one source rank and
// belong to one expert. The experts need rows sorted by (local expert, source rank). Calls visit(first row in arrival order,
// first row in sorted order, number of rows) for each block.
template <class Order, class Visit>
void each_block(const ExpertRows& here, std::int64_t sources, const Order& order, Visit visit) {
  const std::int64_t leaves = here.leaves / sources;  // number of leaves per source rank
  const auto rows_of = [&](std::int64_t source, std::int64_t expert) {
    std::int64_t rows = 0;
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) rows += here.count(expert, source * leaves + leaf);
    return rows;
  };
  std::vector<std::int64_t> taken;  // the first row of each (expert, source rank) in sorted order
  std::int64_t before = 0, arrived = 0;
  for (std::int64_t expert = 0; expert < here.experts; ++expert)
    for (std::int64_t source = 0; source < sources; ++source) {
      taken.push_back(before);
      before += rows_of(source, expert);
    }
  for (const auto& [source, expert] : order) {
    const std::int64_t rows = rows_of(source, expert);
    if (rows > 0) visit(arrived, taken[static_cast<std::size_t>(expert * sources + source)], rows);
    arrived += rows;
  }
}

RowsBetween reversed(const RowsBetween& rows, std::int64_t ranks) {
  RowsBetween back;
  for (std::int64_t from = 0; from < ranks; ++from)
    for (std::int64_t to = 0; to < ranks; ++to) back.push_back(rows[static_cast<std::size_t>(to * ranks + from)]);
  return back;
}

}  // namespace

Tensor ExpertParallel::like(const Tensor& x, std::int64_t rows, Context& context) {
  return context.typed({rows, x.dim(1)}, x.dtype(), Category::workspace);
}

std::vector<std::int64_t> ExpertParallel::of_all_ranks(const NumbersOf& numbers_of, Context& context) const {
  const std::vector<std::int64_t> mine = numbers_of(axis_.rank());
  const std::int64_t numbers = std::ssize(mine);
  const Tensor from = context.typed({numbers}, DType::i32, Category::workspace);
  const Tensor to = context.typed({axis_.size() * numbers}, DType::i32, Category::workspace);
  if (!from.phantom())
    with_values<std::int32_t>(from, Use::write, [&](auto values) {
      std::ranges::transform(mine, values.begin(), [](std::int64_t number) { return static_cast<std::int32_t>(number); });
    });
  axis_.all_gather(from, to);
  std::vector<std::int64_t> all;
  if (to.phantom())
    for (std::int64_t rank = 0; rank < axis_.size(); ++rank) {
      const std::vector<std::int64_t> theirs = numbers_of(rank);
      all.insert(all.end(), theirs.begin(), theirs.end());
    }
  else
    with_values<std::int32_t>(to, Use::read, [&](auto values) { all.assign(values.begin(), values.end()); });
  return all;
}

std::int64_t ExpertParallel::most_leaves(const ExpertRows& home, const Routing& routing, const Context& context) const {
  if (places_.empty()) return home.leaves;
  const auto longest = std::ranges::max_element(places_, {}, [](const auto& of_source) { return of_source.size(); });
  return routing.places.dim(0) / context.tokens.tokens * Leaves(context.leaves().length, std::ssize(*longest)).per_sample();
}

std::vector<std::int32_t> ExpertParallel::planned_choices(std::int64_t source, const Routing& routing) const {
  if (places_.empty()) return routing.planned;
  return choices_at(routing.planned, places_[static_cast<std::size_t>(source)], routing.places.dim(1));
}

std::vector<std::int64_t> ExpertParallel::padded_counts_of(std::int64_t source, const ExpertRows& home,
                                                           const Routing& routing, const Context& context) const {
  if (places_.empty()) return home.counts;
  std::vector<std::int64_t> counts = home.counts;
  if (routing.places.phantom()) {
    const Leaves leaves{context.leaves().length, std::ssize(places_[static_cast<std::size_t>(source)])};
    counts = counts_of_samples(routing.places.dim(0) / context.tokens.tokens, planned_choices(source, routing),
                               {.experts = home.experts, .chosen = routing.places.dim(1)}, leaves);
  }
  const std::int64_t leaves = std::ssize(counts) / home.experts, most = most_leaves(home, routing, context);
  std::vector<std::int64_t> all(static_cast<std::size_t>(home.experts * most));
  for (std::int64_t expert = 0; expert < home.experts; ++expert)
    std::copy_n(counts.begin() + expert * leaves, leaves, all.begin() + expert * most);
  return all;
}

ExpertRows ExpertParallel::rows_here(const std::vector<std::int64_t>& all, std::int64_t experts, std::int64_t leaves) const {
  const std::int64_t ranks = axis_.size(), own = experts / ranks, numbers = std::ssize(all) / ranks;
  const auto count_of = [&](std::int64_t rank, std::int64_t expert, std::int64_t leaf) {
    return all[static_cast<std::size_t>(rank * numbers + expert * leaves + leaf)];
  };
  ExpertRows here{.experts = own, .leaves = ranks * leaves, .counts = {}};
  for (std::int64_t expert = own * axis_.rank(); expert < own * (axis_.rank() + 1); ++expert)
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      for (std::int64_t leaf = 0; leaf < leaves; ++leaf) here.counts.push_back(count_of(rank, expert, leaf));
  for (std::int64_t from = 0; from < ranks; ++from)
    for (std::int64_t to = 0; to < ranks; ++to) {
      std::int64_t& rows = here.between.emplace_back(0);
      for (std::int64_t expert = to * own; expert < (to + 1) * own; ++expert)
        for (std::int64_t leaf = 0; leaf < leaves; ++leaf) rows += count_of(from, expert, leaf);
    }
  return here;
}

ExpertRows ExpertParallel::here(const ExpertRows& home, const Routing& routing, Context& context) const {
  const auto counts = [&](std::int64_t source) { return padded_counts_of(source, home, routing, context); };
  return rows_here(of_all_ranks(counts, context), home.experts, most_leaves(home, routing, context));
}

std::vector<ExpertParallel::Block> ExpertParallel::plain_order(const ExpertRows& here) const {
  std::vector<Block> order;
  for (std::int64_t source = 0; source < axis_.size(); ++source)
    for (std::int64_t expert = 0; expert < here.experts; ++expert) order.push_back({source, expert});
  return order;
}

Tensor ExpertParallel::sorted(const Tensor& arrived, const ExpertRows& here, const std::vector<Block>& order,
                              Context& context) const {
  const Tensor sorted = like(arrived, here.all(), context);
  each_block(here, axis_.size(), order, [&](std::int64_t from, std::int64_t to, std::int64_t number) {
    copy(arrived.narrow(from, number).slice(), sorted.narrow(to, number).slice());
  });
  return sorted;
}

Tensor ExpertParallel::dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows& home,
                                const ExpertRows& here, Context& context) const {
  const Tensor rows = ExpertExchange::dispatch(x, weights, places, home, here, context);
  const Tensor arrived = like(x, here.all(), context);
  axis_.all_to_all(rows, arrived, here.between);
  return here.experts == 1 ? arrived : sorted(arrived, here, plain_order(here), context);
}

std::function<Tensor()> ExpertParallel::start_combine(const Tensor& rows, const ExpertRows& home, const ExpertRows& here,
                                                      Context& context) const {
  Tensor leaving = rows;
  if (here.experts > 1) {
    leaving = like(rows, here.all(), context);
    each_block(here, axis_.size(), plain_order(here), [&](std::int64_t to, std::int64_t from, std::int64_t number) {
      copy(rows.narrow(from, number).slice(), leaving.narrow(to, number).slice());
    });
  }
  const Tensor back = like(rows, home.all(), context);
  const auto pending =
      std::make_shared<Axis::Pending>(axis_.start_all_to_all(leaving, back, reversed(here.between, axis_.size())));
  if (!overlaps_) pending->wait();
  return [=] {
    pending->wait();
    return back;
  };
}

std::unique_ptr<ExpertExchange> exchange_of(const Mesh& mesh, const ExchangeOptions& options, const TokenCut* cut) {
  const AxisTable& axes = *mesh.layout().axes;
  const AxisSet divides_experts = axes.dividing(Divides::experts, expert_grid);
  Axis& experts = mesh.along(divides_experts);
  if (experts.size() == 1) return std::make_unique<ExpertExchange>();
  PlacesOfSources places;
  if (cut && cut->ranks() > 1)
    for (const std::int64_t rank :
         context_ranks_along(mesh.layout(), mesh.world().rank(), axes.row_of(axes.names_of(divides_experts).front())))
      places.push_back(cut->places(rank));
  const bool overlaps = options.combine == Combine::overlapped;
  if (options.dispatch == Dispatch::by_host && number_of_hosts(experts.hosts()) > 1)
    return experts_by_host(experts, overlaps, std::move(places));
  return std::make_unique<ExpertParallel>(experts, overlaps, std::move(places));
}

void ExchangeOptions::declare(Options& o) {
  o.add("moe-dispatch", dispatch,
        "how tokens travel to experts: a row for each expert, or once to a host that has several of a token's experts");
  o.add("moe-combine", combine,
        "while rows return from experts, compute the shared expert and weight gradients (overlapped), or wait (blocking)");
}

}  // namespace chorale
