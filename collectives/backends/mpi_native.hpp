// MPI's own collectives as the algorithm "native": the baseline. Blocking calls where the caller would wait anyway, since libraries
// tune those best; else the nonblocking ones. Over a communicator of the group's own, where MPI has the last word: calls that differ
// between ranks are found only while one of the nonblocking ones waits.
//
// Beside MPI's types and operators there are ours for 16-bit floats, which are combined in f32 and rounded at each combination.
// Other types are the library's matter: its min and max may lose a NaN, and Open MPI's sums of u8 saturate (collectives/selection.hpp).
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
  struct Cut {  // a vector's blocks, as MPI wants them
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
  Buffer landing_;  // of a reduce_scatter in place, which MPI would leave at the start of the vector
  // The input of an all_to_all in place is copied here first. Ours may be in place on some ranks only, MPI's on all or
  // none. And if both addresses are equal, Open MPI assumes in place with equal counts both ways, and hangs where the
  // counts differ.
  Buffer copy_;
  void* landed_ = nullptr;
  bool blocking_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;  // of a collective, which MPI lets nobody cancel or free
};

}  // namespace chorale
