// A table of a device's kernels. For each host function that takes a Queue, the table has a function with the same
// signature. The CUDA plugin fills the table. The host function checks shapes and types. If the queue has a device, the host
// function then calls the device's function instead of running loops on the host:
//
//   gelu_forward(x, y, queue) ── checks ──┬── on a device ──▶ device->gelu_forward(x, y, queue) enqueues the kernel
//                                         └── on the host ──▶ loops in gelu_forward
//
// Each device function also requires that all tensors are on the current device.
#pragma once
#include <memory>
#include <span>

#include "src/math/activation.hpp"
#include "src/math/attention.hpp"
#include "src/math/cast.hpp"
#include "src/math/column_sums.hpp"
#include "src/math/cross_entropy.hpp"
#include "src/math/dropout.hpp"
#include "src/math/embedding.hpp"
#include "src/math/heads.hpp"
#include "src/math/norm.hpp"
#include "src/math/numerics.hpp"
#include "src/math/optimizer_steps.hpp"
#include "src/math/reduction.hpp"
#include "src/math/routing.hpp"
#include "src/math/slots.hpp"
#include "src/memory/device_plugin.hpp"

namespace chorale {

inline constexpr std::size_t most_addends = 256;  // number of sources in one device reduction; a kernel argument holds their
                                                  // pointers

// clang-format off
// All functions that have the same signature on a device as on the host. On a device, number_rows() waits for the device,
// and does not count dropped choices.
#define CHORALE_HOST_KERNELS(KERNEL)                                                          \
  KERNEL(gelu_forward)       KERNEL(gelu_backward)                                            \
  KERNEL(swiglu_forward)     KERNEL(swiglu_backward)                                          \
  KERNEL(norm_forward)       KERNEL(norm_backward)                                            \
  KERNEL(add_columns)        KERNEL(add_norm_gradients)                                       \
  KERNEL(add_rows)           KERNEL(gather_rows)         KERNEL(add_positions)                \
  KERNEL(rotate)             KERNEL(copy_heads)                                               \
  KERNEL(row_maxima)         KERNEL(target_logits)                                            \
  KERNEL(token_losses)       KERNEL(cross_entropy_gradient)                                   \
  KERNEL(dropout)            KERNEL(add_residual)                                             \
  KERNEL(attention_forward)  KERNEL(attention_backward)                                       \
  KERNEL(adamw)              KERNEL(sgd)                                                      \
  KERNEL(cast)                                                                                \
  KERNEL(number_rows)        KERNEL(count_choices)       KERNEL(routing_gradient)             \
  KERNEL(take_rows)          KERNEL(add_slots)           KERNEL(weight_gradients)

// All functions for which DeviceKernels states the signature, because no host function has it.
#define CHORALE_OWN_KERNELS(KERNEL)                                                           \
  KERNEL(route)              KERNEL(sum_exponentials)    KERNEL(add_losses)                   \
  KERNEL(add_squares)        KERNEL(reduce)              KERNEL(divide)
// clang-format on

struct DeviceKernels {
  // copy() copies between host and device, or within one of them, in stream order. wait() returns after all work in the
  // stream is done.
  void (*copy)(void* to, const void* from, std::int64_t bytes, const Queue& queue);
  void (*clear)(void* place, std::int64_t bytes, const Queue& queue);
  void (*wait)(const Queue& queue);
  // mark() records an event in the stream. seconds_between() returns the time between two completed events
  // (timing_event.hpp).
  std::shared_ptr<void> (*mark)(const Queue& queue);
  double (*seconds_between)(void* mark, void* later);
  void (*move_mark)(void* mark, const Queue& queue);  // records the event again, at the stream's current end
  bool (*passed)(void* mark);                         // whether the event has completed; never waits
  std::shared_ptr<void> (*stream)();                  // creates a stream that does not wait for the default stream

#define CHORALE_POINTER(name) decltype(&chorale::name) name;
  CHORALE_HOST_KERNELS(CHORALE_POINTER)
#undef CHORALE_POINTER

  // The functions of routing.hpp. In this table, route() fills the tensors of `routing`, which must already be allocated.
  // number_rows() sets `places` and `counts`.
  void (*route)(const Tensor& logits, const RoutingRule& rule, std::span<const std::int32_t> forced, const Routing& routing,
                const Queue& queue);

  // The sums of fast numerics (fast_sums.hpp).
  void (*sum_exponentials)(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Queue& queue);
  void (*add_losses)(const Tensor& losses, const Tensor& total, const Queue& queue);
  void (*add_squares)(std::span<const ScaledSlice> gradients, double* sum, const Queue& queue);

  // The functions of reduction.hpp, for at most `most_addends` sources. The caller can free the list of sources after the
  // call.
  void (*reduce)(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count,
                 const Queue& queue);
  void (*divide)(DType dtype, void* out, std::int64_t count, std::int64_t by, const Queue& queue);
};

// The plugin's entry points for kernels. The entry points for memory are in src/memory/device_plugin.hpp. The caller must
// delete a Numerics object that an entry point returns.
using CudaKernelsFunction = const DeviceKernels*();  // chorale_cuda_kernels
using CudaNumericsFunction = Numerics*();            // chorale_cuda_numerics (fast), chorale_cuda_exact_numerics
using CudaWorkspaceFunction = std::int64_t();        // bytes of workspace for fast matrix products

// Throws if no plugin is loaded.
const DeviceKernels& cuda_kernels(const DevicePlugin& plugin);

// queue_on() and numerics_on() use the host if `device` is null.
Queue queue_on(const DevicePlugin* device, int threads);
std::unique_ptr<Numerics> numerics_on(const DevicePlugin* device, NumericsKind kind);
std::int64_t workspace_bytes_on(const DevicePlugin& device, NumericsKind numerics);

}  // namespace chorale
