// Runs MPI's own collectives as the algorithm "native", which is the baseline for Chorale's algorithms. By default,
// MpiNative calls MPI's nonblocking collectives. A benchmark may request the blocking collectives (Run::blocking), which MPI
// libraries tune best. MPI does not check that all ranks make the same call, so ranks compare their calls before each native
// call (mpi_native_calls.hpp).
//
// For 16-bit floating-point types, Chorale registers its own MPI operators, which combine two values in f32 and round the
// result. Other types use MPI's operators. MPI's min and max can drop a NaN, and Open MPI's u8 sums saturate (native_agrees
// in chorale/algorithm.hpp).
#pragma once
#include <vector>

#include "collectives/backends/message/call_agreement.hpp"
#include "collectives/backends/mpi_native_calls.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct OpTraits {
  using type = MPI_Op;
  static type none() { return MPI_OP_NULL; }
  static void close(type op) noexcept { PMPI_Op_free(&op); }
};

class MpiNative final : public Operation {
 public:
  MpiNative(MpiNativeCalls& calls, CallAgreement& agreement, const Plan& plan, Allocator workspace);
  void start(const Run& run) override;
  bool progress() override;
  void examine() override { watch_.examine(); }
  bool may_be_written() noexcept override;

 private:
  struct Cut {  // the blocks of a vector, as MPI arguments
    std::vector<int> counts, starts;
    bool is_even = false;
  };
  static Cut cut(const Blocks& blocks, int size);
  template <class Blocking, class Later, class... Args>
  void call(Blocking blocking, Later later, Args... args);
  void begin();
  void call_symmetric(const void* in, void* out);
  void call_rooted(const void* in, void* out);
  void call_blocks(const void* in, void* out);

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

}  // namespace chorale
