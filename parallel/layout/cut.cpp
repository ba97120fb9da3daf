#include "parallel/layout/cut.hpp"

#include <algorithm>

#include <chorale/named.hpp>
#include "layers/context.hpp"

namespace chorale {
namespace {

// Returns the chunk that contains a block. Chunk i of n begins with block ⌊blocks·i/n⌋.
std::int64_t chunk_of(std::int64_t block, std::int64_t blocks, std::int64_t chunks) {
  return ((block + 1) * chunks - 1) / blocks;
}

std::int64_t contiguous(std::int64_t block, std::int64_t blocks, std::int64_t ranks) {
  return chunk_of(block, blocks, ranks);
}

std::int64_t zigzag(std::int64_t block, std::int64_t blocks, std::int64_t ranks) {
  const std::int64_t chunk = chunk_of(block, blocks, 2 * ranks);
  return std::min(chunk, 2 * ranks - 1 - chunk);
}

std::int64_t striped(std::int64_t block, std::int64_t, std::int64_t ranks) { return block % ranks; }

std::int64_t zigzag_if_it_fits(std::int64_t block, std::int64_t blocks, std::int64_t ranks) {
  return blocks < 2 * ranks ? contiguous(block, blocks, ranks) : zigzag(block, blocks, ranks);
}

}  // namespace

const std::vector<CutRow>& token_cuts() {
  static const std::vector<CutRow> rows{
      {"contiguous", 1, contiguous},
      {"zigzag", 2, zigzag},
      {"striped", 1, striped},
      {"balanced", 1, zigzag_if_it_fits, true},
  };
  return rows;
}

const CutRow& token_cut_named(const std::string& name) { return row_named(token_cuts(), "cut of a sequence", name); }

const CutRow& token_cut_for(const CutRow* asked, std::int64_t sequence, std::int64_t ranks) {
  if (asked) return *asked;
  const CutRow& even = token_cut_named("zigzag");
  const bool fits = Context::leaves_of(sequence).per_sample() >= ranks * even.blocks_per_rank;
  return fits ? even : token_cut_named("contiguous");
}

TokenCut::TokenCut(std::int64_t sequence, std::int64_t ranks, const CutRow* cut)
    : row_(&token_cut_for(cut, sequence, ranks)), sequence_(sequence), runs_(static_cast<std::size_t>(ranks)) {
  const Leaves leaves = Context::leaves_of(sequence);
  for (std::int64_t block = 0; block < leaves.per_sample(); ++block) {
    const std::int64_t first = leaves.first_row(block), count = leaves.first_row(block + 1) - first;
    add(ranks == 1 ? 0 : row_->rank_of(block, leaves.per_sample(), ranks), first, count);
  }
}

void TokenCut::add(std::int64_t rank, std::int64_t first, std::int64_t count, std::int64_t first_key) {
  auto& runs = runs_[static_cast<std::size_t>(rank)];
  if (!runs.empty() && runs.back().first + runs.back().count == first)
    runs.back().count += count;
  else
    runs.push_back({first, count, runs.empty() ? 0 : runs.back().row + runs.back().count, first_key});
}

TokenCut TokenCut::dealt(const std::vector<std::int64_t>& rank_of, const std::vector<std::int64_t>& first_keys) const {
  const Leaves leaves = Context::leaves_of(sequence_);
  TokenCut cut = *this;
  cut.runs_.assign(runs_.size(), {});
  for (std::int64_t block = 0; block < leaves.per_sample(); ++block) {
    const std::int64_t first = leaves.first_row(block);
    const auto i = static_cast<std::size_t>(block);
    cut.add(rank_of[i], first, leaves.first_row(block + 1) - first, first_keys[i]);
  }
  return cut;
}

TokenCut TokenCut::joined(const std::vector<std::int64_t>& part_of) const {
  std::vector<std::pair<TokenRun, std::int64_t>> all;  // each run of tokens, and the part that gets the run
  for (std::int64_t rank = 0; rank < ranks(); ++rank)
    for (const TokenRun& run : runs(rank)) all.emplace_back(run, part_of[static_cast<std::size_t>(rank)]);
  std::ranges::sort(all, {}, [](const auto& run) { return run.first.first; });
  TokenCut cut = *this;
  cut.runs_.assign(static_cast<std::size_t>(std::ranges::max(part_of) + 1), {});
  for (const auto& [run, part] : all) cut.add(part, run.first, run.count);
  return cut;
}

TokenCut TokenCut::within(const std::vector<std::int64_t>& part_of, std::int64_t part) const {
  const TokenCut parts = joined(part_of);
  TokenCut cut = *this;
  cut.sequence_ = parts.tokens(part);
  cut.runs_.clear();
  for (std::int64_t rank = 0; rank < ranks(); ++rank) {
    if (part_of[static_cast<std::size_t>(rank)] != part) continue;
    cut.runs_.emplace_back();
    for (const TokenRun& run : runs(rank))
      for (const TokenRun& whole : parts.runs(part))
        if (whole.first <= run.first && run.first < whole.first + whole.count)
          cut.add(cut.ranks() - 1, whole.row + run.first - whole.first, run.count);
  }
  return cut;
}

std::int64_t TokenCut::tokens(std::int64_t rank) const {
  const auto& all = runs(rank);
  return all.empty() ? 0 : all.back().row + all.back().count;
}

std::int64_t TokenCut::fullest() const {
  std::int64_t fullest = 0;
  for (std::int64_t rank = 1; rank < ranks(); ++rank)
    if (tokens(rank) > tokens(fullest)) fullest = rank;
  return fullest;
}

bool TokenCut::in_order() const {
  if (row_->by_work && ranks() > 1) return false;  // ranks can divide each sample differently
  std::int64_t first = 0;
  for (const auto& runs : runs_) {
    if (runs.size() != 1 || runs.front().first != first) return false;
    first += runs.front().count;
  }
  return true;
}

std::vector<std::int64_t> TokenCut::places(std::int64_t rank) const {
  std::vector<std::int64_t> all;
  for (const TokenRun& run : runs(rank))
    for (std::int64_t i = 0; i < run.count; ++i) all.push_back(run.first + i);
  return all;
}

// The query at position p attends to p earlier keys and to the key of its own token. The pair with its own key counts as
// half, as in whole_sequences (src/math/attention.cpp).
double TokenCut::pairs(std::int64_t rank) const {
  double sum = 0;
  for (const TokenRun& run : runs(rank))
    sum += static_cast<double>(run.count) * (static_cast<double>(run.first) + static_cast<double>(run.count) / 2);
  return sum;
}

// Among the tokens of a run, the first token sees the earliest key, so the run stores only this key. Two runs are equal or
// disjoint.
bool TokenCut::sees(std::int64_t rank, const TokenRun& keys) const {
  return std::ranges::any_of(runs(rank), [&](const TokenRun& queries) {
    return queries.first >= keys.first && queries.first_key < keys.first + keys.count;
  });
}

// Two runs are equal or disjoint.
double TokenCut::pairs(std::int64_t rank, const TokenRun& keys) const {
  double sum = 0;
  for (const TokenRun& queries : runs(rank))
    if (queries.first >= keys.first)
      sum += static_cast<double>(queries.count * keys.count) / (queries.first == keys.first ? 2 : 1);
  return sum;
}

}  // namespace chorale
