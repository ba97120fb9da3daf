// Runs MPI's own collectives as the algorithm "native", which is the baseline for Chorale's algorithms. By default,
// MpiNative calls MPI's nonblocking collectives. A benchmark may request the blocking collectives (Run::blocking), which MPI
// libraries tune best. MPI does not check that all ranks make the same call, so ranks compare their calls before each native
// call (mpi_native_calls.hpp).
//
// For 16-bit floating-point types, Chorale registers its own MPI operators, which combine two values in f32 and round the
// result. Other types use MPI's operators. MPI's min and max can drop a NaN, and Open MPI's u8 sums saturate (native_agrees
// in chorale/algorithm.hpp).
#pragma once
#include "collectives/backends/message/call_agreement.hpp"
#include "collectives/backends/mpi_native_calls.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

std::unique_ptr<Operation> mpi_native(MpiNativeCalls& calls, CallAgreement& agreement, const Plan& plan,
                                      Allocator workspace);

}  // namespace chorale
