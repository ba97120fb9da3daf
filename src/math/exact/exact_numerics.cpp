// Numerics whose losses, gradients and weights are bit-identical on every layout of ranks, threads and micro-batches, and
// with every collective algorithm. Two rules guarantee this:
//
//   - A sum over tokens, shards or ranks is split into canonical blocks. The blocks depend on the model and the batch but
//     never on the layout. Each block is a chain of f32 operations in a fixed order (chains.hpp). Blocks are added as
//     integers (fixed_point.hpp), both locally and in collectives.
//   - If every rank that computes a sum has all addends of the sum, the sum is one chain.
//
// ExactNumerics checks shapes and types. The loops run on the host or on a device (kernels.hpp) and give bit-identical
// results.
//
// Compared with f32 sums, exact sums are slightly more accurate (chains are shorter) and 20 to 33 % slower. Partial sums and
// gradients take twice the memory.
#include "src/math/exact/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <vector>

#include "src/math/attention_tiles.hpp"
#include "src/math/exact/chains.hpp"
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/host_kernels.hpp"
#include "src/math/exact/squares.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/math/race_marks.hpp"

namespace chorale {
namespace exact {
namespace {

void require_f32(DType dtype, const char* what) {
  if (dtype == DType::f32) return;
  usage_error("exact numerics compute in f32", fmt::format("the type of {} is {}", what, name_of(dtype)),
              "compute in f32, or use fast numerics (--numerics fast)");
}

// Values (inputs) must be f32. The user chooses their type, so a wrong type is a usage error. Sums (accumulators) must be
// i64. Chorale chooses their type, so a wrong type is an internal error.
void require_values(const Tensor& tensor, const char* what) { require_f32(tensor.dtype(), what); }
void require_sums(const Tensor& tensor, const char* what) {
  require(tensor.dtype() == DType::i64, "exact sums must be i64, but the type of {} is {}", what, name_of(tensor.dtype()));
}

// Returns false if any tensor is phantom (has no storage), because then there is nothing to compute. Null pointers are
// ignored.
bool all_real(std::initializer_list<const Tensor*> tensors) {
  const Device device = (*tensors.begin())->device();
  for (const Tensor* tensor : tensors) {
    if (tensor && tensor->phantom()) return false;
    require(!tensor || tensor->device() == device,
            "the tensors of a sum must be on the same device, but are on {} and on {}", name_of(device),
            name_of(tensor ? tensor->device() : device));
  }
  return true;
}

const float* floats(const Tensor& tensor) { return static_cast<const float*>(tensor.slice().data); }

Operands operands(const Tensor& x, const Tensor& w, bool transposed, const Tensor& y) {
  const std::int64_t m = x.dim(0), k = x.dim(1), n = w.dim(transposed ? 0 : 1), inner = w.dim(transposed ? 1 : 0);
  require(inner == k && y.dim(0) == m && y.dim(1) == n, "x {} times w {}{} does not give y {}", to_string(x.shape()),
          to_string(w.shape()), transposed ? " transposed" : "", to_string(y.shape()));
  require_values(x, "x");
  require_values(w, "w");
  return {{floats(x), k, 1}, {floats(w), transposed ? k : 1, transposed ? 1 : n}, m, n, k};
}

// The work of a product that reads f32 factors and writes its sums.
KernelWork work_of(const Operands& o) {
  const auto m = static_cast<double>(o.rows), n = static_cast<double>(o.columns), k = static_cast<double>(o.depth);
  return {.work = Work::product,
          .amount = 2 * m * n * k,
          .bytes = 4 * (m * k + k * n + 2 * m * n),
          .m = o.rows,
          .n = o.columns,
          .k = o.depth};
}

class ExactNumerics final : public Numerics {
 public:
  explicit ExactNumerics(std::unique_ptr<Kernels> kernels) : kernels_(std::move(kernels)) {}

  const char* name() const override { return "exact"; }
  DType partial_type(DType compute) const override { return gradient_type(compute); }

  DType gradient_type(DType compute) const override {
    require_f32(compute, "the computation");
    return DType::i64;
  }

  void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
               const Queue& queue) override {
    const Operands operands = exact::operands(x, w, transposed, y);
    require_values(y, "y");
    require(!bias || (bias->count() == operands.columns && bias->dtype() == DType::f32),
            "a bias must have {} elements of type f32, one per column, but its shape is {}", operands.columns,
            bias ? to_string(bias->shape()) : "");
    if (!all_real({&x, &w, bias, &y})) return;
    const Kernel kernel(queue, transposed ? "product, transposed" : "product", work_of(operands), false);
    mark_accesses({&x, &w, bias}, {&y});
    kernels_->product(operands, bias, y, queue);
  }

  void partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y, SumSite& site,
                       const Queue& queue) override {
    const Operands operands = exact::operands(x, w, transposed, y);
    require_sums(y, "y");
    require(block > 0, "blocks must have a positive number of inputs, not {}", block);
    if (!all_real({&x, &w, &y})) return;
    const Kernel kernel(queue, "partial product", work_of(operands), false);
    mark_accesses({&x, &w}, {&y});
    kernels_->sum_blocks(operands, equal_blocks(operands.depth, block), false, y, site, queue);
  }

  void settle(const Tensor& partial, const Tensor& y, const SumSite& site, const Queue& queue) override {
    require(partial.count() == y.count(), "sums {} cannot be converted to {}", to_string(partial.shape()),
            to_string(y.shape()));
    require_sums(partial, "the partial sum");
    require_values(y, "y");
    if (!all_real({&partial, &y})) return;
    const Kernel kernel(queue, "cast of sums", partial, y);
    mark_accesses({&partial}, {&y});
    kernels_->settle(partial, y, static_cast<float>(unit(site)), queue);
  }

  void add_outer(const Tensor& x, const Tensor& dy, const Leaves& leaves, const Tensor& dw, SumSite& site,
                 const Queue& queue) override {
    add_outer_by_leaves(x, dy, leaves.sizes(x.dim(0)), dw, site, queue);
  }

  void add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                           SumSite& site, const Queue& queue) override {
    const std::int64_t tokens = x.dim(0), k = x.dim(1), n = dy.dim(1);
    require(dy.dim(0) == tokens && dw.dim(0) == k && dw.dim(1) == n, "x {} and dy {} do not give dw {}",
            to_string(x.shape()), to_string(dy.shape()), to_string(dw.shape()));
    require_leaves(leaves, tokens);
    require_values(x, "x");
    require_values(dy, "dy");
    require_sums(dw, "dw");
    if (!all_real({&x, &dy, &dw})) return;
    std::vector<std::int64_t> blocks;
    std::ranges::copy_if(leaves, std::back_inserter(blocks), [](std::int64_t leaf) { return leaf > 0; });
    const Operands operands{{floats(x), 1, k}, {floats(dy), 1, n}, k, n, tokens};
    const Kernel kernel(queue, "gradient of weights", work_of(operands), false);
    mark_accesses({&x, &dy}, {&dw});
    kernels_->sum_blocks(operands, blocks, true, dw, site, queue);
  }

  void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) override {
    require(db.count() == dy.dim(1), "the column sums of {} do not fit into a tensor of shape {}", to_string(dy.shape()),
            to_string(db.shape()));
    require_values(dy, "dy");
    require_sums(db, "db");
    if (!all_real({&dy, &db})) return;
    const Kernel kernel(queue, "column sums", dy, db);
    mark_accesses({&dy}, {&db});
    kernels_->add_columns(dy, db, site, queue);
  }

  // The stored mean of an RMS norm is 0, so the same formula serves both kinds of norm.
  void add_norm_gradients(NormKind, const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                          const Tensor* dshift, SumSite& site, const Queue& queue) override {
    const std::int64_t rows = dy.dim(0), width = dy.dim(1);
    require(x.shape() == dy.shape() && stats.count() == 2 * rows && dgain.count() == width &&
                (!dshift || dshift->count() == width),
            "dy {}, x {} and stats {} do not give gains {}", to_string(dy.shape()), to_string(x.shape()),
            to_string(stats.shape()), to_string(dgain.shape()));
    for (const Tensor* values : {&dy, &x, &stats}) require_values(*values, "an input of a norm's gradient");
    require_sums(dgain, "dgain");
    if (dshift) require_sums(*dshift, "dshift");
    if (!all_real({&dy, &x, &stats, &dgain, dshift})) return;
    const Kernel kernel(queue, "gradients of norms", dy, x, stats, dgain, dshift);
    mark_accesses({&dy, &x, &stats}, {&dgain, dshift});
    kernels_->add_norm_gradients(dy, x, stats, dgain, dshift, site, queue);
  }

  void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                const Queue& queue) override {
    require(ids.count() == dy.dim(0) && table.dim(1) == dy.dim(1), "{} ids and dy {} do not fit the table {}", ids.count(),
            to_string(dy.shape()), to_string(table.shape()));
    require(ids.dtype() == DType::i32, "ids are i32, not {}", name_of(ids.dtype()));
    require_values(dy, "dy");
    require_sums(table, "the table");
    if (!all_real({&ids, &dy, &table})) return;
    const Kernel kernel(queue, "gradient of embedding", ids, dy, dy);
    mark_accesses({&ids, &dy}, {&table});
    kernels_->add_rows(ids, first, dy, table, site, queue);
  }

  void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                          const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                          const Queue& queue) override {
    attention::check(in, dout, out, lse, dqkv, dkeys, DType::i64);
    require(leaf > 0, "a leaf must have at least one query, not {}", leaf);
    require_values(in.qkv, "qkv");
    if (in.qkv.phantom()) return queue.note(attention::backward_work(in));
    if (!all_real({&in.qkv, &dout, &out, &lse, &dqkv, &dkeys.tensor})) return;
    const Kernel kernel(queue, "gradient of attention", attention::backward_work(in), false);
    mark_accesses({&in.qkv, &in.keys.tensor, &dout, &out, &lse}, {&dqkv, &dkeys.tensor});
    kernels_->attention_backward(in, dout, out, lse, dqkv, dkeys, leaf, site, queue);
  }

  void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                        const Queue& queue) override {
    const std::int64_t rows = logits.dim(0);
    require(maxima.count() == rows && sums.count() == rows, "logits {} cannot have {} maxima and {} sums",
            to_string(logits.shape()), maxima.count(), sums.count());
    require_values(logits, "the logits");
    require_values(maxima, "the maxima of the logits");
    require_sums(sums, "the sums of exponentials");
    if (!all_real({&logits, &maxima, &sums})) return;
    const Kernel kernel(queue, "sums of exponentials", logits, maxima, sums);
    mark_accesses({&logits, &maxima}, {&sums});
    kernels_->sum_exponentials(logits, maxima, sums, site, queue);
  }

  void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) override {
    require(total.count() == 1, "the sum of the losses must have one element, but its shape is {}",
            to_string(total.shape()));
    require_values(losses, "the losses");
    require_sums(total, "the sum of the losses");
    if (!all_real({&losses, &total})) return;
    const Kernel kernel(queue, "sum of losses", losses, total);
    mark_accesses({&losses}, {&total});
    kernels_->add_losses(losses, total, site, queue);
  }

  double unit(const SumSite& site) const override { return exact::unit(site); }

  void check(SumSite& site) const override {
    kernels_->collect(site);
    const double highest = std::bit_cast<float>(site.highest), limit = greatest_addend(site);
    if (highest <= limit) return;  // false for NaN
    const char* what = std::isfinite(highest) ? "numbers have grown too large to be summed exactly"
                                              : "numbers are not finite and cannot be summed exactly";
    throw Error(
        Exit::runtime, fmt::format("{}: {}", site.name, what),
        fmt::format("the largest addend is {:.4g}; with up to {} addends in units of 2^-{}, at most {:.4g} is allowed",
                    highest * exact::unit(site), site.addends, exponent(site), limit * exact::unit(site)),
        "lower the learning rate or clip gradients; fast numerics (--numerics fast) have no such limit");
  }

  void add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const override {
    for (const auto& [values, scale] : gradients) {
      require(values.dtype == DType::i64 || values.dtype == DType::f32,
              "the exact norm takes i64 sums or f32 values, not {}", name_of(values.dtype));
      if (!values.data) return;
    }
    double bytes = 0;
    for (const ScaledSlice& gradient : gradients) bytes += static_cast<double>(gradient.values.bytes());
    const Kernel kernel(queue, "norm of gradients", Kernel::on_bytes(bytes), false);
    sum.exact = std::min(sum.exact + kernels_->squares(gradients, queue), greatest_square_sum);
  }

  double root(const SquareSum& sum) const override {
    if (sum.exact >= greatest_square_sum)
      throw Error(Exit::runtime, "the norm of the gradient is NaN or too large to be summed exactly",
                  fmt::format("at most {:.0f} is allowed", greatest_norm),
                  "lower the learning rate; fast numerics (--numerics fast) have no such limit");
    return std::sqrt(static_cast<double>(sum.exact)) / units_of_norm;
  }

 private:
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace

std::unique_ptr<Numerics> numerics_on(std::unique_ptr<Kernels> kernels) {
  return std::make_unique<ExactNumerics>(std::move(kernels));
}

}  // namespace exact

std::unique_ptr<Numerics> exact_numerics() {
  exact::require_plain_arithmetic();
  return exact::numerics_on(std::make_unique<exact::HostKernels>());
}

}  // namespace chorale
