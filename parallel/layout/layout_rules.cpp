#include "parallel/layout/layout_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layers/context.hpp"
#include "parallel/layout/cut.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The sizes of these axes, such as "data 2 × tensor 2".
std::string sizes_in_words(const Layout& l, AxisSet set, const char* between) {
  std::vector<std::string> words;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if (contains(set, row)) words.push_back(fmt::format("{} {}", (*l.axes)[row].noun, l.sizes[row]));
  return join(words, between);
}

AxisSet dense_axes(const Layout& l) { return l.axes->in_grids(dense_grid); }

// Returns text such as "world 8 / (data 2 × tensor 2)": the number of ranks divided by the sizes of the axes `others`. Axes
// of size 1 are not mentioned.
std::string quotient(const Layout& l, std::int64_t world, AxisSet others) {
  const std::string sizes = sizes_in_words(l, l.divided(others), " × ");
  return sizes.empty() ? fmt::format("world {}", world) : fmt::format("world {} / ({})", world, sizes);
}

MaybeMisfit check_world(const Layout& l, const LayoutLimits& limits) {
  if (MaybeMisfit misfit = check_rest(l, limits.world)) return misfit;
  const auto end = l.sizes.begin() + static_cast<std::ptrdiff_t>(l.axes->size());
  if (*std::min_element(l.sizes.begin(), end) < 1 || l.chunks < 1 || l.zero < 0 || l.zero > 3)
    return Misfit{"sizes must be 1 or more, and the ZeRO stage 0 to 3",
                  fmt::format("{}, chunks {}, zero {}",
                              sizes_in_words(l, dense_axes(l) | l.axes->dividing(Divides::experts, expert_grid), ", "),
                              l.chunks, l.zero)};
  if (l.ranks() != limits.world)
    return Misfit{"the layout needs another number of ranks",
                  fmt::format("{} = {} ranks; there are {}", sizes_in_words(l, l.divided(dense_axes(l)), " × "), l.ranks(),
                              limits.world)};
  return {};
}

MaybeMisfit check_zero(const Layout& l, const LayoutLimits&) { return check_repeats(l); }

MaybeMisfit check_heads(const Layout& l, const LayoutLimits& limits) {
  const ModelShape& s = limits.shape;
  const std::string name = s.groups == s.heads
                               ? fmt::format("num-attention-heads {}", s.heads)
                               : fmt::format("num-query-groups {} (of num-attention-heads {})", s.groups, s.heads);
  if (s.groups < l.shards())
    return Misfit{"there are fewer key-value heads than tensor ranks",
                  fmt::format("{} is less than tensor {}", name, l.shards())};
  if (s.groups % l.shards() != 0)
    return Misfit{"the tensor ranks do not divide the heads",
                  fmt::format("{} is not a multiple of tensor {}", name, l.shards())};
  if (s.units() % l.shards() != 0)
    return Misfit{
        "the tensor ranks do not divide the MLP",
        fmt::format("its {} units (gcd of ffn-hidden-size {} and num-attention-heads {}) are not a multiple of tensor {}",
                    s.units(), s.ffn, s.heads, l.shards())};
  for (const auto& [name, width] :
       {std::pair{"moe-ffn-hidden-size", s.experts.ffn}, {"moe-shared-expert-intermediate-size", s.experts.shared_ffn}})
    if (s.experts.count > 0 && s.units_of(width) % l.shards() != 0)
      return Misfit{"the tensor ranks do not divide the experts",
                    fmt::format("the {} units (gcd of {} {} and num-attention-heads {}) are not a multiple of tensor {}",
                                s.units_of(width), name, width, s.heads, l.shards())};
  const std::int64_t blocks = (s.vocabulary + s.vocabulary_block() - 1) / s.vocabulary_block();
  if (blocks < l.shards())
    return Misfit{"there are fewer blocks of the vocabulary than tensor ranks",
                  fmt::format("vocab-size {} is {} blocks of {}; tensor is {}", s.vocabulary, blocks, s.vocabulary_block(),
                              l.shards())};
  return {};
}

MaybeMisfit check_experts(const Layout& l, const LayoutLimits& limits) {
  if (!l.grids_agree())
    return Misfit{"with expert ranks, no other axis may be between dp and cp",
                  fmt::format("the order is {}, expert {}", join(l.order, ","), l.expert_ranks())};
  const std::int64_t ranks = l.expert_ranks(), experts = limits.shape.experts.count;
  if (ranks == 1 || (experts > 0 && experts % ranks == 0)) return {};
  if (experts == 0)
    return Misfit{"only a model with experts can divide them among ranks", fmt::format("num-experts 0, expert {}", ranks)};
  return Misfit{"the expert ranks do not divide the experts",
                fmt::format("num-experts {} is not a multiple of expert {}", experts, ranks)};
}

MaybeMisfit check_stages(const Layout& l, const LayoutLimits& limits) {
  if (l.chunks > 1 && l.stages() == 1)
    return Misfit{"only a pipeline can have several chunks per stage", fmt::format("pipeline 1, chunks {}", l.chunks)};
  if (l.stages() * l.chunks > limits.shape.layers)
    return Misfit{"there are more stages than layers",
                  fmt::format("pipeline {} × chunks {} = {}; num-layers is {}", l.stages(), l.chunks, l.stages() * l.chunks,
                              limits.shape.layers)};
  return {};
}

MaybeMisfit check_batch(const Layout& l, const LayoutLimits& limits) {
  const std::int64_t unit = batch_unit(l, limits);
  const std::string micro = limits.micro_batch > 0 ? fmt::format("micro-batch-size {} × ", limits.micro_batch) : "";
  if (limits.global_batch % unit != 0)
    return Misfit{"the batch does not divide evenly",
                  fmt::format("global-batch-size {} must be a multiple of {}data_parallel {}{} (data_parallel = {})",
                              limits.global_batch, micro, l.replicas(), micro.empty() ? "" : fmt::format(" = {}", unit),
                              quotient(l, limits.world, dense_axes(l) & ~l.axes->dividing(Divides::batch)))};
  return {};
}

// Checks the rule of the pipeline schedule. This check runs after check_batch, so the number of micro-batches is an integer.
MaybeMisfit check_schedule(const Layout& l, const LayoutLimits& limits) {
  if (l.stages() == 1 && l.schedule == Layout{}.schedule) return {};
  if (l.stages() == 1)
    return Misfit{"only a pipeline has a schedule", fmt::format("schedule is {}, pipeline 1", l.schedule->name)};
  const std::string why = l.schedule->misfit(pipeline_of(l, limits.global_batch / batch_unit(l, limits)));
  if (why.empty()) return {};
  return Misfit{fmt::format("the schedule {} does not fit", l.schedule->name), why};
}

MaybeMisfit check_context(const Layout& l, const LayoutLimits& limits) {
  const std::int64_t ranks = l.context_ranks(), sequence = limits.shape.sequence;
  if (ranks == 1) return {};
  const bool by_host = limits.context.scheme->has_levels && limits.context.inner == 0;
  if (limits.one_host || !by_host)
    if (MaybeMisfit misfit = misfit_of_heads(limits.context, limits.shape, l)) return misfit;
  if (MaybeMisfit misfit = misfit_of_cut(limits.context, limits.shape, l)) return misfit;
  const CutRow& cut = token_cut_for(limits.context.cut, sequence, ranks);
  const Leaves leaves = Context::leaves_of(sequence);
  const std::int64_t length = leaves.length, blocks = leaves.per_sample();
  if (blocks >= ranks * cut.blocks_per_rank) return {};
  return Misfit{"the sequence has too few blocks for the context ranks",
                fmt::format("seq-length {} is {} blocks of {}; context {} needs {} with --context-cut {}", sequence, blocks,
                            length, ranks, ranks * cut.blocks_per_rank, cut.name)};
}

// Must run after check_batch and check_context, because it can divide the batch by the number of replicas.
MaybeMisfit check_sequence(const Layout& l, const LayoutLimits& limits) {
  if (!l.sequence) return {};
  if (l.shards() == 1)
    return Misfit{"sequence parallelism divides tokens among tensor ranks", "tensor is 1: there is only one tensor rank"};
  const std::int64_t micro = limits.micro_batch > 0 ? limits.micro_batch : default_micro_batch(l, limits.global_batch);
  const TokenCut cut(limits.shape.sequence, l.context_ranks(), limits.context.cut);
  for (std::int64_t rank = 0; rank < cut.ranks(); ++rank)
    if (const std::int64_t tokens = cut.tokens(rank); micro * tokens % l.shards() != 0)
      return Misfit{"sequence parallelism cannot split the tokens evenly",
                    fmt::format("micro-batch-size {} × {} {} = {} tokens are not a multiple of tensor {}", micro,
                                cut.ranks() > 1 ? fmt::format("tokens of context rank {},", rank) : "seq-length", tokens,
                                micro * tokens, l.shards())};
  return {};
}

}  // namespace

std::vector<std::int64_t> fitting_inner(const ModelShape& s, const Layout& l) {
  const std::int64_t ranks = l.context_ranks(), groups = s.groups / l.shards();
  std::vector<std::int64_t> fitting;
  for (std::int64_t inner = 1; inner <= ranks; ++inner) {
    // If there are fewer key-value heads than ranks, ranks must share heads. Only a scheme in which all context-parallel
    // ranks exchange heads for tokens allows this.
    const bool shares = inner == ranks && ranks % groups == 0 && s.queries() % (ranks / groups) == 0;
    if (ranks % inner == 0 && (groups % inner == 0 || shares)) fitting.push_back(inner);
  }
  return fitting;
}

MaybeMisfit misfit_of_heads(const ContextOptions& context, const ModelShape& s, const Layout& l) {
  const bool levels = context.scheme->has_levels;
  if (!levels && !context.scheme->divides_heads) return {};
  const std::int64_t ranks = l.context_ranks(), groups = s.groups / l.shards();
  const std::int64_t inner = levels && context.inner > 0 ? context.inner : ranks;
  const std::vector<std::int64_t> fitting = fitting_inner(s, l);
  if (std::ranges::count(fitting, inner)) return {};
  std::vector<std::string> others;
  for (const std::int64_t other : fitting) others.push_back(std::to_string(other));
  const std::string remedy = levels ? "--context-inner " + either(others) : "";
  const std::string heads = fmt::format("num-query-groups {} / tensor {} = {}", s.groups, l.shards(), groups);
  if (inner == ranks)
    return Misfit{
        fmt::format("the context ranks can neither divide nor share the key-value heads, as the scheme {} needs",
                    context.scheme->name),
        fmt::format("{} is no multiple of context {}, and the {} query heads of each do not divide among the ranks "
                    "that would share it",
                    heads, ranks, s.queries()),
        remedy};
  if (ranks % inner != 0)
    return Misfit{"the context ranks do not form groups of this size",
                  fmt::format("context {} is not a multiple of context-inner {}", ranks, inner), remedy};
  return Misfit{"the ranks that exchange heads do not divide the key-value heads",
                fmt::format("{} is not a multiple of context-inner {}", heads, inner), remedy};
}

MaybeMisfit misfit_of_cut(const ContextOptions& context, const ModelShape& s, const Layout& l) {
  const CutRow& cut = token_cut_for(context.cut, s.sequence, l.context_ranks());
  if (!cut.by_work || !context.scheme->has_levels) return {};
  return Misfit{
      fmt::format("the groups of {} need the same tokens of every sample", context.scheme->name),
      fmt::format("context {} with --context-cut {}, which cuts each sample by its documents", l.context_ranks(), cut.name),
      "--context-cut zigzag, or --context-scheme ring"};
}

std::int64_t default_micro_batch(const Layout& l, std::int64_t global_batch) {
  return l.stages() > 1 ? 1 : std::max<std::int64_t>(1, global_batch / l.replicas());
}

std::int64_t batch_unit(const Layout& l, const LayoutLimits& limits) {
  return l.replicas() * std::max<std::int64_t>(1, limits.micro_batch);
}

MaybeMisfit check_rest(const Layout& l, std::int64_t world) {
  const AxisSet experts = l.axes->dividing(Divides::experts, expert_grid);
  for (std::size_t row = 0; row < l.axes->size(); ++row) {
    const AxisRow& axis = (*l.axes)[row];
    if (!axis.takes_rest || l.size(row) != 0) continue;
    if (!axis.follows())
      return Misfit{
          "the layout does not divide the number of ranks",
          fmt::format("{}_parallel = {} is not an integer", axis.noun, quotient(l, world, dense_axes(l) & ~(1U << row)))};
    return Misfit{"the expert ranks do not divide the replicas",
                  fmt::format("{} is not a multiple of {}",
                              sizes_in_words(l, l.divided(dense_axes(l) & ~l.axes->in_grids(expert_grid)), " × "),
                              sizes_in_words(l, experts, " × "))};
  }
  return {};
}

MaybeMisfit check_repeats(const Layout& l) {
  if (l.hpz && l.zero < 3)
    return Misfit{"only ZeRO-3 gathers values in the backward pass, so only there hpz helps",
                  fmt::format("hpz, zero {}", l.zero), "--zero 3"};
  if (l.hpz && l.repeats() == 1) {
    std::vector<std::string> smaller;
    for (std::int64_t ranks = l.context_ranks(); ranks < l.copies(); ranks += l.context_ranks())
      if (l.copies() % ranks == 0) smaller.push_back(std::to_string(ranks));
    return Misfit{"with one group of replicas, hpz would keep the shards that ZeRO-3 has anyway",
                  fmt::format("hpz, {}", sizes_in_words(l, l.axes->repeating(), ", ")),
                  smaller.empty() ? "" : "--hpz " + either(smaller)};
  }
  if (l.repeats() == 1 || l.zero > 0) return {};
  return Misfit{"without ZeRO there are no shards to repeat",
                fmt::format("{}, zero 0", sizes_in_words(l, l.axes->repeating(), ", ")), "--zero 1, 2 or 3"};
}

// check_world must come first. check_batch must precede the checks that divide the batch.
MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits) {
  for (const auto check : {check_world, check_zero, check_heads, check_experts, check_stages, check_batch, check_schedule,
                           check_context, check_sequence})
    if (MaybeMisfit misfit = check(layout, limits)) return misfit;
  return {};
}

}  // namespace chorale
