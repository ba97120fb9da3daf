#include "parallel/step/tensor.hpp"

#include "layers/context.hpp"

namespace chorale {
namespace {

// Views the bytes as integers. If a value is zero on all ranks but one, an integer sum preserves its bits.
Tensor bits_of(const Tensor& x) { return x.as(x.bytes() % 4 == 0 ? DType::i32 : DType::u8); }

// A std::function must be copyable, but Pending is not.
std::shared_ptr<Axis::Pending> shared(Axis::Pending pending) { return std::make_shared<Axis::Pending>(std::move(pending)); }

Tensor rows_here(const Tensor& all, Axis& axis, Context& context, Category category) {
  require(all.dim(0) % axis.size() == 0, "{} rows cannot be split evenly among {} ranks", all.dim(0), axis.size());
  return context.typed({all.dim(0) / axis.size(), all.dim(1)}, all.dtype(), category);
}

}  // namespace

std::function<Tensor()> TensorParallel::start_sum(const Tensor& partial, SumSite& site, Context& context) const {
  return [partial, &site, &context, pending = shared(axis_.start_all_reduce(partial))] {
    pending->wait();
    return context.settled(partial, site);
  };
}

Tensor TensorParallel::pick(const Tensor& rows, Context&) const {
  axis_.all_reduce(bits_of(rows));
  return rows;
}

void TensorParallel::greatest(const Tensor& x) const { axis_.all_reduce(x, Redop::max); }

void TensorParallel::add(const Tensor& sums, const Tensor& hits) const {
  axis_.all_reduce(sums);
  axis_.all_reduce(bits_of(hits));
}

Tensor TensorParallel::part(const Tensor& x, Context& context) const {
  if (!partitioned_) return x;
  const Tensor mine = rows_here(x, axis_, context, Category::activations);
  copy(x.narrow(mine.dim(0) * axis_.rank(), mine.dim(0)).slice(), mine.slice());
  return mine;
}

Tensor TensorParallel::restored(const Tensor& part, Context& context) const {
  if (!partitioned_) return part;
  const Tensor all = context.tensor({part.dim(0) * axis_.size(), part.dim(1)});
  axis_.all_gather(part, all);
  return all;
}

Tensor SequenceParallel::whole(const Tensor& x, Context& context) const {
  const Tensor all = context.typed({x.dim(0) * axis_.size(), x.dim(1)}, x.dtype(), Category::workspace);
  axis_.all_gather(x, all);
  return all;
}

std::function<Tensor()> SequenceParallel::start_sum(const Tensor& partial, SumSite& site, Context& context) const {
  const bool ends = partial.dtype() == context.compute;
  const Tensor here = rows_here(partial, axis_, context, ends ? Category::activations : Category::workspace);
  return [partial, here, &site, &context, pending = shared(axis_.start_reduce_scatter(partial, here))] {
    pending->wait();
    return context.settled(here, site);
  };
}

Tensor SequenceParallel::pick(const Tensor& rows, Context& context) const {
  const Tensor here = rows_here(rows, axis_, context, Category::activations);
  axis_.reduce_scatter(bits_of(rows), bits_of(here));
  return here;
}

}  // namespace chorale
