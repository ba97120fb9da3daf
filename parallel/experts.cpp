#include "parallel/experts.hpp"

#include <algorithm>

#include "layers/context.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// The rows of `here` in two orders: by (source rank, own expert), as they arrive, and by (own expert, source rank), as the
// experts take them. Calls visit(first row as they arrive, first row as the experts take them, number of rows).
template <class Visit>
void each_block(const ExpertRows& here, std::int64_t sources, Visit visit) {
  const std::int64_t leaves = here.leaves / sources;  // of one source
  std::int64_t arrived = 0;
  std::vector<std::int64_t> taken;  // by expert: its first row that no earlier source has filled
  for (std::int64_t expert = 0; expert < here.experts; ++expert) taken.push_back(here.sum(0, expert));
  for (std::int64_t source = 0; source < sources; ++source)
    for (std::int64_t expert = 0; expert < here.experts; ++expert) {
      std::int64_t rows = 0;
      for (std::int64_t leaf = 0; leaf < leaves; ++leaf) rows += here.count(expert, source * leaves + leaf);
      std::int64_t& first = taken[static_cast<std::size_t>(expert)];
      if (rows > 0) visit(arrived, first, rows);
      arrived += rows, first += rows;
    }
}

Tensor like(const Tensor& rows, std::int64_t number, Context& context) {
  return context.typed({number, rows.dim(1)}, rows.dtype(), Category::workspace);
}

RowsBetween reversed(const RowsBetween& rows, std::int64_t ranks) {
  RowsBetween back;
  for (std::int64_t from = 0; from < ranks; ++from)
    for (std::int64_t to = 0; to < ranks; ++to) back.push_back(rows[static_cast<std::size_t>(to * ranks + from)]);
  return back;
}

}  // namespace

ExpertRows ExpertParallel::here(const ExpertRows& home, Context& context) const {
  const std::int64_t ranks = axis_.size(), own = home.experts / ranks, numbers = home.experts * home.leaves;
  const Tensor mine = context.typed({numbers}, DType::i32, Category::workspace);
  const Tensor all = context.typed({ranks * numbers}, DType::i32, Category::workspace);
  if (!mine.phantom())
    with_values<std::int32_t>(mine, Use::write, [&](auto to) {
      std::ranges::transform(home.counts, to.begin(), [](std::int64_t rows) { return static_cast<std::int32_t>(rows); });
    });
  axis_.all_gather(mine, all);

  std::vector<std::int64_t> counts;  // [rank, expert, leaf]
  if (all.phantom())                 // in a plan, all ranks have the same counts
    for (std::int64_t rank = 0; rank < ranks; ++rank) counts.insert(counts.end(), home.counts.begin(), home.counts.end());
  else
    with_values<std::int32_t>(all, Use::read, [&](auto from) { counts.assign(from.begin(), from.end()); });
  const auto count_of = [&](std::int64_t rank, std::int64_t expert, std::int64_t leaf) {
    return counts[static_cast<std::size_t>((rank * home.experts + expert) * home.leaves + leaf)];
  };

  ExpertRows here{.experts = own, .leaves = ranks * home.leaves, .counts = {}};
  for (std::int64_t expert = own * axis_.rank(); expert < own * (axis_.rank() + 1); ++expert)
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      for (std::int64_t leaf = 0; leaf < home.leaves; ++leaf) here.counts.push_back(count_of(rank, expert, leaf));
  for (std::int64_t from = 0; from < ranks; ++from)
    for (std::int64_t to = 0; to < ranks; ++to) {
      std::int64_t& rows = here.between.emplace_back(0);
      for (std::int64_t expert = to * own; expert < (to + 1) * own; ++expert)
        for (std::int64_t leaf = 0; leaf < home.leaves; ++leaf) rows += count_of(from, expert, leaf);
    }
  return here;
}

Tensor ExpertParallel::dispatch(const Tensor& rows, const ExpertRows&, const ExpertRows& here, Context& context) const {
  const Tensor arrived = like(rows, here.all(), context);
  axis_.all_to_all(rows, arrived, here.between);
  if (here.experts == 1) return arrived;
  const Tensor sorted = like(rows, here.all(), context);
  each_block(here, axis_.size(), [&](std::int64_t from, std::int64_t to, std::int64_t number) {
    copy(arrived.narrow(from, number).slice(), sorted.narrow(to, number).slice());
  });
  return sorted;
}

Tensor ExpertParallel::combine(const Tensor& rows, const ExpertRows& home, const ExpertRows& here, Context& context) const {
  Tensor leaving = rows;
  if (here.experts > 1) {
    leaving = like(rows, here.all(), context);
    each_block(here, axis_.size(), [&](std::int64_t to, std::int64_t from, std::int64_t number) {
      copy(rows.narrow(from, number).slice(), leaving.narrow(to, number).slice());
    });
  }
  const Tensor back = like(rows, home.all(), context);
  axis_.all_to_all(leaving, back, reversed(here.between, axis_.size()));
  return back;
}

std::unique_ptr<ExpertExchange> exchange_of(const Mesh& mesh) {
  Axis& experts = mesh.along(dividing(*mesh.layout().axes, Divides::experts, expert_grid));
  if (experts.size() == 1) return std::make_unique<ExpertExchange>();
  return std::make_unique<ExpertParallel>(experts);
}

}  // namespace chorale
