// MPI's own collectives as the algorithm "native": the baseline. Uses blocking calls if the caller would wait anyway,
// because libraries tune those best; otherwise nonblocking ones. Each group has an MPI communicator of its own. MPI compares
// no calls, so a call that differs between ranks is found only while a nonblocking one waits.
//
// For 16-bit floats there are operators of our own: each combination is computed in f32 and rounded. Other types are left to
// the library: its min and max may lose a NaN, and Open MPI's sums of u8 saturate (collectives/selection.hpp).
#pragma once
#include <vector>

#include "collectives/backends/message/call_agreement.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct OpTraits {
  using type = MPI_Op;
  static type none() { return MPI_OP_NULL; }
  static void close(type op) noexcept { PMPI_Op_free(&op); }
};

class MpiNative final : public Operation {
 public:
  MpiNative(MPI_Comm comm, CallBook& book, const Plan& plan, Allocator workspace);
  void start(const Run& run) override;
  bool progress() override;
  void examine() override { watch_.examine(); }
  bool may_be_written() noexcept override;

 private:
  struct Cut {  // a vector's blocks in MPI's form
    std::vector<int> counts, starts;
    bool is_even = false;
  };
  static Cut cut(const Blocks& blocks, int size);
  template <class Blocking, class Later, class... Args>
  void call(Blocking blocking, Later later, Args... args);
  void call_symmetric(const void* in, void* out);
  void call_rooted(const void* in, void* out);
  void call_blocks(const void* in, void* out);

  MPI_Comm comm_;
  CallWatch watch_;
  Problem problem_;
  DType dtype_;
  MPI_Datatype type_;
  Handle<OpTraits> own_op_;
  MPI_Op op_;
  Cut given_, taken_;
  Buffer landing_;  // result of an in-place reduce_scatter, which MPI would leave at the start of the vector
  // Copy of the input of an in-place all_to_all. Ours may be in place on some ranks only, MPI's on all or none. If both
  // addresses are equal, Open MPI also assumes in place with equal counts both ways, and hangs if the counts differ.
  Buffer copy_;
  void* landed_ = nullptr;
  bool blocking_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;  // of a collective; MPI allows neither cancelling nor freeing it
};

}  // namespace chorale
