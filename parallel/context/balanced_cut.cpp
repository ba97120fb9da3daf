#include "parallel/context/balanced_cut.hpp"

#include <algorithm>

#include "layers/context.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::int64_t>;

struct CutBlock {
  std::size_t sample, index;
  std::int64_t work;
};

// Returns twice the number of (query, key) pairs in which a query of these tokens can attend to the key. A token's pair with
// its own key counts as half, so the result is an integer.
std::int64_t work_of(std::span<const std::int32_t> positions) {
  std::int64_t work = 0;
  for (const std::int32_t position : positions) work += 2 * std::int64_t{position} + 1;
  return work;
}

// Returns the rank with the least work so far, among the ranks that can still take a block. If several ranks have equally
// little work, returns the first of them.
std::size_t least_busy(const Numbers& work, const Numbers& room) {
  std::size_t best = work.size();
  for (std::size_t rank = 0; rank < work.size(); ++rank)
    if (room[rank] > 0 && (best == work.size() || work[rank] < work[best])) best = rank;
  return best;
}

}  // namespace

std::vector<TokenCut> balanced_cuts(const TokenCut& usual, std::span<const std::int32_t> positions) {
  const auto sequence = static_cast<std::size_t>(usual.sequence()), ranks = static_cast<std::size_t>(usual.ranks());
  const std::size_t samples = positions.size() / sequence;
  const Leaves leaves = Context::leaves_of(usual.sequence());
  const std::int64_t blocks = leaves.per_sample();
  std::vector<Numbers> owners(samples), room(samples, Numbers(ranks)), first_keys(samples);
  Numbers work(ranks);
  std::vector<CutBlock> to_deal;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const auto of_sample = positions.subspan(sample * sequence, sequence);
    const bool one_document = of_sample.back() == usual.sequence() - 1;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t first = leaves.first_row(block), count = leaves.first_row(block + 1) - first;
      const auto tokens = of_sample.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      const auto rank = static_cast<std::size_t>(usual.row().rank_of(block, blocks, usual.ranks()));
      owners[sample].push_back(static_cast<std::int64_t>(rank));
      first_keys[sample].push_back(first - tokens.front());
      if (one_document || count < leaves.length) {
        work[rank] += work_of(tokens);
        continue;
      }
      ++room[sample][rank];
      to_deal.push_back({sample, static_cast<std::size_t>(block), work_of(tokens)});
    }
  }
  std::ranges::stable_sort(to_deal, std::ranges::greater{}, &CutBlock::work);
  for (const CutBlock& block : to_deal) {
    const std::size_t rank = least_busy(work, room[block.sample]);
    --room[block.sample][rank];
    work[rank] += block.work;
    owners[block.sample][block.index] = static_cast<std::int64_t>(rank);
  }
  std::vector<TokenCut> cuts;
  for (std::size_t sample = 0; sample < samples; ++sample) cuts.push_back(usual.dealt(owners[sample], first_keys[sample]));
  return cuts;
}

}  // namespace chorale
