#include "parallel/plan/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "parallel/plan/plan.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The index of the stage that needs the most memory, and the plan of its fullest rank.
std::pair<std::int64_t, RankPlan> fullest_stage(const TrainingOptions& options, const Layout& layout) {
  std::pair<std::int64_t, RankPlan> fullest;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage) {
    RankPlan plan = plan_memory({.options = options, .layout = layout}, stage);
    if (plan.peak_bytes > fullest.second.peak_bytes) fullest = {stage, std::move(plan)};
  }
  return fullest;
}

// Returns a lower bound on a rank's bytes, without a plan. The bound is an equal share of the weights and gradients that
// stay in memory, computed as if all weights belonged to experts.
std::int64_t least_bytes(const TrainingOptions& options, const Layout& layout) {
  const auto share = [&](int zero) {
    const std::int64_t replicas = layout.zero >= zero ? layout.zero_ranks() : layout.expert_ranks();
    return options.shape.parameters() / (layout.shards() * layout.stages() * replicas);
  };
  const std::int64_t values = options.offload.parameters ? 0 : share(3),
                     gradients = options.offload.gradients ? 0 : share(2);
  const std::int64_t value = size_of(options.compute);
  return values * value + gradients * std::min(value, size_of(options.replicas.gradient_sums.value_or(options.compute)));
}

// Returns other layouts for the same number of ranks, but at most 32 of them, because there can be hundreds. The first of
// these layouts differ from `asked` only by a higher ZeRO stage.
std::vector<Layout> others_of(const Layout& asked, const LayoutLimits& limits) {
  std::vector<Layout> layouts;
  for (Layout more = asked; asked.copies() > 1 && more.zero < 3;) {
    ++more.zero;
    layouts.push_back(more);
  }
  for (const Layout& other : all_layouts(limits))
    if (other.sizes != asked.sizes) layouts.push_back(other);
  layouts.resize(std::min<std::size_t>(layouts.size(), 32));
  return layouts;
}

// Returns all layouts without repeated shards, each with the ZeRO stage that needs the least memory. A single replica gets
// no ZeRO. The exception is a request for stage 3, which is kept, because stage 3 allows value shards to be offloaded to a
// file.
std::vector<Layout> thrifty_layouts(const LayoutLimits& limits, const Layout& asked) {
  std::vector<Layout> layouts = all_layouts(limits);
  std::erase_if(layouts,
                [&](const Layout& l) { return l.zero != (l.copies() > 1 || asked.zero == 3 ? 3 : 0) || l.repeats() > 1; });
  return layouts;
}

std::string first_three(const std::vector<Layout>& layouts, const HasRoom& has_room) {
  std::vector<std::string> words;
  for (const Layout& layout : layouts)
    if (words.size() < 3 && has_room(layout)) words.push_back(to_string(layout));
  return either(words);
}

// Joins words into "a", "a with b" or "a with b and c".
std::string with(const std::vector<std::string>& words) {
  const std::string others = join({words.begin() + 1, words.end()}, " and ");
  return others.empty() ? words.front() : fmt::format("{} with {}", words.front(), others);
}

// Returns flags with which the model fits in memory: recomputation, smaller micro-batches, or the least offload that is
// enough. If no single flag suffices, tries all flags together, and then ZeRO-3, which allows every tensor to be offloaded.
std::vector<std::string> flags_that_fit(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of) {
  const TrainingOptions asked = options_of(layout);
  std::vector<std::string> flags;
  const auto attempt = [&](const std::vector<std::string>& words, const Layout& on, Recompute recompute,
                           std::int64_t micro_batch, const OffloadOptions& offload) {
    const auto changed = [&](const Layout& other) {
      TrainingOptions options = options_of(other);
      options.recompute = recompute;
      options.batch.micro = micro_batch;
      options.offload = offload;
      return options;
    };
    const bool enough = has_room(on, changed);
    if (enough) flags.push_back(with(words));
    return enough;
  };
  const std::string recompute = "--recompute full", micro_batch = "--micro-batch-size 1";
  const bool can_recompute = asked.recompute != Recompute::full, can_divide = asked.batch.micro > 1;
  if (can_recompute) attempt({recompute}, layout, Recompute::full, asked.batch.micro, asked.offload);
  if (can_divide) attempt({micro_batch}, layout, asked.recompute, 1, asked.offload);
  OffloadOptions now = asked.offload;
  if (asked.kernels.device) now.to_host = true;
  const std::vector<OffloadOptions> more = more_in_tier(now, layout);
  for (const OffloadOptions& offload : more)
    if (attempt({words_of(offload)}, layout, asked.recompute, asked.batch.micro, offload)) break;
  std::vector<std::string> both;
  if (can_recompute) both.push_back(recompute);
  if (can_divide) both.push_back(micro_batch);
  if (flags.empty() && both.size() == 2) attempt(both, layout, Recompute::full, 1, asked.offload);
  const auto last = [&](const Layout& on, const OffloadOptions& offload, std::vector<std::string> words) {
    words.push_back(words_of(offload));
    if (flags.empty()) attempt(words, on, asked.recompute, asked.batch.micro, offload);
    words.insert(words.end(), both.begin(), both.end());
    if (flags.empty() && !both.empty()) attempt(words, on, Recompute::full, 1, offload);
  };
  if (!more.empty()) last(layout, more.back(), {});
  Layout sharded = layout;
  sharded.zero = 3;
  if (layout.zero < 3 && fits(sharded, limits)) last(sharded, more_in_tier(now, sharded).back(), {"--zero 3"});
  return flags;
}

}  // namespace

std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is) {
  const TrainingOptions options = options_of(layout);
  const std::int64_t limit = options.memory.limit;
  if (limit == 0) return std::nullopt;
  const auto [stage, plan] = fullest_stage(options, layout);
  if (plan.peak_bytes <= limit) return std::nullopt;
  std::string overflows;
  std::vector<std::string> sum;
  std::int64_t so_far = 0;
  for (std::size_t c = 0; c < categories; ++c) {
    if (plan.peak[c] == 0) continue;
    sum.push_back(fmt::format("{} {}", category_names[c], human_bytes(plan.peak[c])));
    so_far += plan.peak[c];
    if (so_far > limit && overflows.empty()) overflows = category_names[c];
  }
  return Shortage{fmt::format("a rank has too little memory for its {}", overflows),
                  fmt::format("{}, a rank of stage {}: peak {} (peaks by category: {}); {} {}", to_string(layout), stage,
                              human_bytes(plan.peak_bytes), join(sum, ", "), limit_is, human_bytes(limit))};
}

void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is) {
  if (const auto shortage = shortage_of(layout, options_of, limit_is)) {
    const auto fits = [&](const Layout& other) { return has_room(other, options_of); };
    const std::string flags = either(flags_that_fit(layout, limits, options_of));
    std::string fix = how_to_fit(layout, limits, fits, flags.empty() ? "take a smaller model" : "");
    if (!flags.empty()) fix = fmt::format("try {}{}{}", flags, fix.empty() ? "" : ", or ", fix);
    throw NoRoom(Exit::usage, shortage->what, shortage->numbers, fix);
  }
}

bool has_room(const Layout& layout, const OptionsOf& options_of) {
  const TrainingOptions options = options_of(layout);
  if (!go_together(options, layout) || least_bytes(options, layout) > options.memory.limit) return false;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    if (plan_memory({.options = options, .layout = layout}, stage).peak_bytes > options.memory.limit) return false;
  return true;
}

std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise) {
  constexpr std::int64_t most_ranks = 4096;
  if (const std::string words = first_three(others_of(layout, limits), has_room); !words.empty()) return "try " + words;
  for (LayoutLimits more = limits; more.world < most_ranks;) {
    more.world *= 2;
    if (const std::string words = first_three(thrifty_layouts(more, layout), has_room); !words.empty())
      return fmt::format("start {} ranks with as much memory each and try {}", more.world, words);
  }
  return otherwise;
}

}  // namespace chorale
