// Provides complete sequences to layers other than attention (layers/sequence_rows.hpp). An all-gather collects the rows of
// all ranks. Let c ranks divide b samples of s tokens evenly, and let a row have n elements. Then a rank sends
// n·b·(s/c)·(c−1) elements.
#include "layers/context.hpp"
#include "parallel/context/context.hpp"
#include "parallel/context/sequence_order.hpp"

namespace chorale {
namespace {

class DividedSequences final : public SequenceRows {
 public:
  DividedSequences(Axis& axis, const TokenCut& cut) : axis_(axis), cut_(cut) {}

  bool divided() const override { return true; }
  Tensor whole(const Tensor& own, Context& context) const override { return gathered(own, axis_, cut_, context); }

  Tensor own(const Tensor& whole, Context& context) const override {
    const std::int64_t rank = axis_.rank(), samples = whole.dim(0) / cut_.sequence();
    const Tensor y = context.typed({samples * cut_.tokens(rank), whole.dim(1)}, whole.dtype());
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (const TokenRun& run : cut_of(sample, cut_, context).runs(rank))
        copy(whole.narrow(sample * cut_.sequence() + run.first, run.count).slice(),
             y.narrow(sample * cut_.tokens(rank) + run.row, run.count).slice());
    return y;
  }

  std::vector<std::int64_t> places(std::int64_t sample, const Context& context) const override {
    std::vector<std::int64_t> all = cut_of(sample, cut_, context).places(axis_.rank());
    if (context.cache)  // the indices start at the first token of this pass, which follows the cached tokens
      for (std::int64_t& place : all) place += context.cache->past;
    return all;
  }

  std::int64_t most_tokens(const Context&) const override { return cut_.tokens(cut_.fullest()); }

 private:
  Axis& axis_;
  const TokenCut& cut_;
};

}  // namespace

std::unique_ptr<SequenceRows> divided_sequences(Axis& axis, const TokenCut& cut) {
  if (axis.size() == 1) return std::make_unique<SequenceRows>();
  return std::make_unique<DividedSequences>(axis, cut);
}

}  // namespace chorale
