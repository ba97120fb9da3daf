// Counts how often tokens choose each expert in one training step. Each transformer block with experts has one count per
// expert: the number of tokens that chose the expert, including choices that were dropped later. The last count of the block
// is the number of dropped choices.
//
//   E = 4                 expert 0   1   2   3   dropped
//   block of experts 0          61  70  66  59         0       every row: E + 1 integers; the first E add up to the step's
//   block of experts 1          90  31  12 123        27       tokens × k
//
// During the step, a rank counts the choices of its own tokens in its own blocks. Then Training sums the counts over ranks,
// in the same reduction as the loss (parallel/step/batch_totals.hpp), so every rank knows the counts of all blocks. All
// tensor-parallel ranks route the same tokens, so only one of these ranks contributes its counts. The sums are integers, so
// they are the same on every layout.
//
// Each tensor rank routes tokens independently. If two tensor ranks chose different experts for a token, the sum of the
// token's outputs would be wrong, and no error would occur. All tensor ranks make the same choices if the layer's input and
// the router's weights are bit-identical on all of these ranks. Chorale's own algorithms give bit-identical sums to all
// ranks (tests/collectives/call/values_test.cpp). An algorithm inside MPI or NCCL can give different results to different
// ranks. With fast numerics, sums over the dp axis can also round differently if tensor ranks use different algorithms for
// these sums. As a check, one more element, the checksum word, is added to the sum over ranks. With T tensor ranks, tensor
// rank 0 contributes T − 1 times the checksum of its counts. Every other tensor rank contributes the negative checksum of
// its counts. The checksum words sum to 0 if all tensor ranks have the same counts. Checksums have 24 bits, so their sums in
// f64 are exact.
//
// Only the first forward pass of a training step counts choices. Context::choices is null in evaluations, in generation and
// when a block is recomputed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <chorale/model.hpp>

#include "src/base/hash.hpp"

namespace chorale {

struct ChoiceCounts {
  std::int64_t experts = 0;
  std::vector<std::int64_t> numbers;  // [blocks of experts, E + 1]

  explicit ChoiceCounts(const ModelShape& shape)
      : experts(shape.experts.count), numbers(static_cast<std::size_t>(shape.expert_blocks() * (experts + 1))) {}

  std::int64_t blocks() const { return std::ssize(numbers) / (experts + 1); }
  std::span<std::int64_t> row(std::int64_t block) { return std::span(numbers).subspan(first(block), length()); }
  std::span<const std::int64_t> chosen(std::int64_t block) const {
    return std::span(numbers).subspan(first(block), length() - 1);
  }
  std::int64_t dropped(std::int64_t block) const { return numbers[first(block) + length() - 1]; }
  double dropped_share() const {  // dropped choices as a fraction of all choices, over all blocks
    std::int64_t all = 0, lost = 0;
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const auto here = chosen(block);
      all += std::accumulate(here.begin(), here.end(), std::int64_t{0});
      lost += dropped(block);
    }
    return all > 0 ? static_cast<double>(lost) / static_cast<double>(all) : 0;
  }
  void clear() { std::ranges::fill(numbers, 0); }

  // This rank's contribution to the sum over all ranks: the rank's counts, then the checksum word. Empty for a model without
  // experts.
  std::int64_t words() const { return numbers.empty() ? 0 : std::ssize(numbers) + 1; }
  std::vector<std::int64_t> given_by(std::int64_t tensor_rank, std::int64_t tensor_ranks) const {
    std::vector<std::int64_t> given(static_cast<std::size_t>(words()));
    if (given.empty()) return given;
    if (tensor_rank == 0) std::ranges::copy(numbers, given.begin());
    given.back() = tensor_rank == 0 ? (tensor_ranks - 1) * checksum() : -checksum();
    return given;
  }
  // Stores the sum over all ranks. Returns whether all tensor ranks have the same counts.
  bool take(std::span<const std::int64_t> sum) {
    std::ranges::copy(sum.first(numbers.size()), numbers.begin());
    return sum.empty() || sum.back() == 0;
  }

 private:
  std::int64_t checksum() const {
    std::uint64_t hash = 0;
    for (const std::int64_t number : numbers) hash = hash_with(hash, static_cast<std::uint64_t>(number));
    return static_cast<std::int64_t>(hash >> 40);
  }
  std::size_t length() const { return static_cast<std::size_t>(experts + 1); }
  std::size_t first(std::int64_t block) const { return static_cast<std::size_t>(block) * length(); }
};

}  // namespace chorale
