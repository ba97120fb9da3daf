#include "collectives/backends/mpi_native.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "collectives/schedule/phases.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return MPI_FLOAT;
    case DType::f64: return MPI_DOUBLE;
    // MPI treats both 16-bit types as integers; Chorale's operators treat them as floating point.
    case DType::f16:
    case DType::bf16: return MPI_UINT16_T;
    case DType::i32: return MPI_INT32_T;
    case DType::i64: return MPI_INT64_T;
    case DType::u8: return MPI_UINT8_T;
  }
  __builtin_unreachable();
}

// The function of an MPI operator ∘ computes inout = in ∘ inout.
template <DType dtype, Redop op>
void combine(void* in, void* inout, int* count, MPI_Datatype*) {
  const void* both[] = {in, inout};
  reduce(op, dtype, inout, both, *count);
}

template <DType dtype>
MPI_User_function* combiner(Redop op) {
  switch (op) {
    case Redop::sum:
    case Redop::avg: return combine<dtype, Redop::sum>;
    case Redop::prod: return combine<dtype, Redop::prod>;
    case Redop::min: return combine<dtype, Redop::min>;
    case Redop::max: return combine<dtype, Redop::max>;
  }
  __builtin_unreachable();
}

struct OpTraits {
  using type = MPI_Op;
  static type none() { return MPI_OP_NULL; }
  static void close(type op) noexcept { PMPI_Op_free(&op); }
};

Handle<OpTraits> own_op(DType dtype, Redop op) {
  if (dtype != DType::f16 && dtype != DType::bf16) return {};
  MPI_Op made = MPI_OP_NULL;
  constexpr int commutes = 1;
  mpi::check(PMPI_Op_create(dtype == DType::f16 ? combiner<DType::f16>(op) : combiner<DType::bf16>(op), commutes, &made));
  return Handle<OpTraits>(made);
}

MPI_Op library_op(Redop op) {
  switch (op) {
    case Redop::sum:
    case Redop::avg: return MPI_SUM;
    case Redop::prod: return MPI_PROD;
    case Redop::min: return MPI_MIN;
    case Redop::max: return MPI_MAX;
  }
  __builtin_unreachable();
}

class MpiNative final : public Operation {
 public:
  MpiNative(MpiNativeCalls& calls, CallAgreement& agreement, const Plan& plan, Allocator workspace)
      : calls_(calls),
        watch_(agreement, plan.signature, others_from(plan.problem.rank, plan.problem.size)),
        problem_(plan.problem),
        dtype_(plan.dtype),
        type_(type_of(plan.dtype)),
        own_op_(own_op(plan.dtype, plan.op)),
        op_(own_op_ ? own_op_.get() : library_op(plan.op)) {
    const bool is_exchange = problem_.what == Collective::all_to_all;
    const std::int64_t longest = std::max(problem_.blocks.total(), is_exchange ? problem_.taken.total() : 0);
    if (longest > std::numeric_limits<int>::max())
      throw Error(
          Exit::usage, "the vector is too long for MPI's own collectives, which count elements in an int",
          fmt::format("{} has {} elements, at most {} are allowed", plan.words, longest, std::numeric_limits<int>::max()),
          "choose one of our algorithms instead of native");
    given_ = cut(problem_.blocks, problem_.size);
    if (is_exchange) taken_ = cut(problem_.taken, problem_.size);
    if (!problem_.in_place) return;
    if (problem_.what == Collective::reduce_scatter)
      landing_ = workspace.allocate(problem_.output_count() * size_of(dtype_), Category::workspace);
    if (is_exchange)  // one extra byte, because even the address of an empty copy must differ from the output's address
      copy_ = workspace.allocate(problem_.input_count() * size_of(dtype_) + 1, Category::workspace);
  }

  void start(const Run& run) override {
    require(request_ == MPI_REQUEST_NULL, "a native operation was started before its last run was over");
    run_ = run;
    begun_ = false;
    landed_ = nullptr;
    watch_.start(run);
    comparison_.start(calls_, run.history);
    if (run.blocking) progress();
  }

  bool progress() override {
    if (!begun_) {
      if (!comparison_.is_over()) return false;
      if (!comparison_.agrees()) {
        watch_.ask();
        return false;
      }
      if (!comparison_.may_begin()) return false;
      begin();
    }
    int over = 1;
    if (request_ != MPI_REQUEST_NULL) mpi::check(PMPI_Test(&request_, &over, MPI_STATUS_IGNORE));
    if (over && landed_) {
      std::memcpy(landed_, landing_.data(), static_cast<std::size_t>(problem_.output_count() * size_of(dtype_)));
      landed_ = nullptr;
    }
    return over != 0;
  }

  void examine() override { watch_.examine(); }

  bool may_be_written() noexcept override {
    int over = 1;
    if (request_ != MPI_REQUEST_NULL) PMPI_Test(&request_, &over, MPI_STATUS_IGNORE);
    return !over;
  }

 private:
  struct Cut {  // the blocks of a vector, as MPI arguments
    std::vector<int> counts, starts;
    bool is_even = false;
  };

  static Cut cut(const Blocks& blocks, int size) {
    Cut cut;
    for (int b = 0; b < size; ++b) {
      cut.counts.push_back(static_cast<int>(blocks.count(b)));
      cut.starts.push_back(static_cast<int>(blocks.first(b)));
    }
    cut.is_even = std::all_of(cut.counts.begin(), cut.counts.end(), [&](int count) { return count == cut.counts[0]; });
    return cut;
  }

  template <class Blocking, class Later, class... Args>
  void call(Blocking blocking, Later later, Args... args) {
    mpi::check(run_.blocking ? blocking(args..., calls_.comm()) : later(args..., calls_.comm(), &request_));
  }

  void begin() {
    begun_ = true;
    comparison_.begins();
    switch (problem_.what) {
      case Collective::all_reduce:
      case Collective::reduce_scatter:
      case Collective::barrier: call_symmetric(run_.input, run_.output); break;
      case Collective::broadcast:
      case Collective::reduce:
      case Collective::gather:
      case Collective::scatter: call_rooted(run_.input, run_.output); break;
      case Collective::all_gather:
      case Collective::all_to_all: call_blocks(run_.input, run_.output); break;
    }
  }

  void call_symmetric(const void* in, void* out) {
    const int n = static_cast<int>(problem_.blocks.total());
    if (problem_.what == Collective::barrier) return call(PMPI_Barrier, PMPI_Ibarrier);
    if (problem_.what == Collective::all_reduce)
      return call(PMPI_Allreduce, PMPI_Iallreduce, problem_.in_place ? MPI_IN_PLACE : in, out, n, type_, op_);
    if (problem_.in_place) landed_ = std::exchange(out, landing_.data());
    if (given_.is_even)
      return call(PMPI_Reduce_scatter_block, PMPI_Ireduce_scatter_block, in, out, given_.counts[0], type_, op_);
    call(PMPI_Reduce_scatter, PMPI_Ireduce_scatter, in, out, given_.counts.data(), type_, op_);
  }

  void call_rooted(const void* in, void* out) {
    const int n = static_cast<int>(problem_.blocks.total()), root = problem_.root;
    const bool is_root = problem_.rank == root;
    const int own = given_.counts[static_cast<std::size_t>(problem_.rank)];
    const bool already_there = is_root && problem_.in_place;
    const void* from = already_there ? MPI_IN_PLACE : in;
    switch (problem_.what) {
      case Collective::broadcast:
        if (is_root && !problem_.in_place && n > 0) std::memcpy(out, in, static_cast<std::size_t>(n * size_of(dtype_)));
        return call(PMPI_Bcast, PMPI_Ibcast, out, n, type_, root);
      case Collective::reduce: return call(PMPI_Reduce, PMPI_Ireduce, from, out, n, type_, op_, root);
      case Collective::gather:
        if (given_.is_even) return call(PMPI_Gather, PMPI_Igather, from, own, type_, out, own, type_, root);
        return call(PMPI_Gatherv, PMPI_Igatherv, from, own, type_, out, given_.counts.data(), given_.starts.data(), type_,
                    root);
      default: break;
    }
    void* into = already_there ? MPI_IN_PLACE : out;
    if (given_.is_even) return call(PMPI_Scatter, PMPI_Iscatter, in, own, type_, into, own, type_, root);
    call(PMPI_Scatterv, PMPI_Iscatterv, in, given_.counts.data(), given_.starts.data(), type_, into, own, type_, root);
  }

  void call_blocks(const void* in, void* out) {
    const int own = given_.counts[static_cast<std::size_t>(problem_.rank)];
    if (problem_.what == Collective::all_gather) {
      const void* from = problem_.in_place ? MPI_IN_PLACE : in;
      if (given_.is_even) return call(PMPI_Allgather, PMPI_Iallgather, from, own, type_, out, own, type_);
      return call(PMPI_Allgatherv, PMPI_Iallgatherv, from, own, type_, out, given_.counts.data(), given_.starts.data(),
                  type_);
    }
    if (problem_.in_place) {
      if (problem_.input_count() > 0)
        std::memcpy(copy_.data(), in, static_cast<std::size_t>(problem_.input_count() * size_of(dtype_)));
      in = copy_.data();
    }
    // Blocks can have equal sizes on one rank and unequal sizes on another rank, so only MPI_Alltoallv is safe.
    call(PMPI_Alltoallv, PMPI_Ialltoallv, in, given_.counts.data(), given_.starts.data(), type_, out, taken_.counts.data(),
         taken_.starts.data(), type_);
  }

  MpiNativeCalls& calls_;
  MpiNativeCalls::Comparison comparison_;
  CallWatch watch_;
  Problem problem_;
  DType dtype_;
  MPI_Datatype type_;
  Handle<OpTraits> own_op_;
  MPI_Op op_;
  Cut given_, taken_;
  Buffer landing_;  // receives the result of an in-place reduce_scatter, which MPI would write to the vector's start
  // A copy of the input of an in-place all_to_all. Chorale's all_to_all can be in place on only some of the ranks, but
  // MPI_Alltoallv must be in place on all ranks or on none. If input and output have the same address, Open MPI also assumes
  // that each rank sends as many elements as it receives. If a rank sends more or fewer elements, Open MPI hangs.
  Buffer copy_;
  void* landed_ = nullptr;  // the end of a call copies landing_ to this address; null if there is no copy
  Run run_;
  bool begun_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;  // MPI forbids canceling or freeing a collective's request
};

}  // namespace

std::unique_ptr<Operation> mpi_native(MpiNativeCalls& calls, CallAgreement& agreement, const Plan& plan,
                                      Allocator workspace) {
  return std::make_unique<MpiNative>(calls, agreement, plan, workspace);
}

}  // namespace chorale
