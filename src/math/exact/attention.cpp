// Computes the gradients of keys and values as exact sums. There is one chain for each leaf of consecutive queries and each
// query head. The chains are rounded and added as integers. Ranks split the queries only at leaf boundaries, so the ranks'
// integers add up to the sums of a single rank.
//
// Rounding a chain costs as much as 12 multiply-adds. A chain has one multiply-add for each query of its leaf.
#include "src/base/round_up.hpp"
#include "src/math/attention_gradients.hpp"
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/host_kernels.hpp"

namespace chorale::exact {
namespace {

using attention::side;

class WholeSums {
 public:
  WholeSums(std::int64_t leaf, std::int64_t width)
      : leaf_(leaf), width_(width), row_(round_up(width, attention::lanes)), dk_(side * row_), dv_(side * row_) {}

  // Selects the sums of one group in one sample. These sums are stored in the row at `to` and in the rows after it.
  void add_to(std::int64_t* to, std::int64_t stride, std::int64_t keys, SiteRounding& rounding) {
    to_ = to;
    stride_ = stride;
    keys_ = keys;
    rounding_ = &rounding;
  }

  std::int64_t leaf() const { return leaf_; }
  attention::KeyGradients begin(std::int64_t) {
    std::fill_n(dk_.data(), side * row_, 0.0f);
    std::fill_n(dv_.data(), side * row_, 0.0f);
    return {dk_.data(), dv_.data()};
  }
  void end(std::int64_t key) {
    for (std::int64_t k = 0; k < std::min(side, keys_ - key); ++k) {
      std::int64_t* const sums = to_ + (key + k) * stride_;
      const float *dk = dk_.data() + k * row_, *dv = dv_.data() + k * row_;
      rounding_->add(sums, width_, [=](std::int64_t i) { return dk[i]; });
      rounding_->add(sums + width_, width_, [=](std::int64_t i) { return dv[i]; });
    }
  }

 private:
  std::int64_t leaf_, width_, row_;
  attention::Floats dk_, dv_;  // the gradients of one tile of keys
  std::int64_t* to_ = nullptr;
  std::int64_t stride_ = 0, keys_ = 0;
  SiteRounding* rounding_ = nullptr;
};

}  // namespace

void HostKernels::attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                     const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                                     const Queue& queue) {
  using namespace attention;
  const std::int64_t queries = in.dropout.tokens.tokens, keys = in.keys.count, groups = in.shape.groups;
  const Drops drops(in.dropout, in.shape);
  std::int64_t* const to = dkeys.tensor.values<std::int64_t>().data();
  rounded_for(queue, in.qkv.dim(0) / queries * groups, site,
              [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
                Gradients gradients(queries, keys, in.shape.width);
                WholeSums sums(leaf, in.shape.width);
                for (std::int64_t pair = first; pair < last; ++pair) {
                  const std::int64_t sample = pair / groups, group = pair % groups;
                  sums.add_to(to + first_key(dkeys, sample, group), dkeys.row, keys, rounding);
                  group_backward<float, float>(in, dout, out, lse, sample, group, drops, gradients, dqkv, sums);
                }
              });
}

}  // namespace chorale::exact
