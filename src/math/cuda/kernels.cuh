// The kernels of src/math on a device. Each function has the same signature as the host function of the same name.
// kernels.cu enters these functions in the table DeviceKernels.
#pragma once
#include "src/math/device_kernels.hpp"

namespace chorale::cuda {

decltype(chorale::gelu_forward) gelu_forward;
decltype(chorale::gelu_backward) gelu_backward;
decltype(chorale::swiglu_forward) swiglu_forward;
decltype(chorale::swiglu_backward) swiglu_backward;
decltype(chorale::norm_forward) norm_forward;
decltype(chorale::norm_backward) norm_backward;
decltype(chorale::add_columns) add_columns;
decltype(chorale::add_norm_gradients) add_norm_gradients;
decltype(chorale::add_rows) add_rows;
decltype(chorale::gather_rows) gather_rows;
decltype(chorale::add_positions) add_positions;
decltype(chorale::rotate) rotate;
decltype(chorale::copy_heads) copy_heads;
decltype(chorale::row_maxima) row_maxima;
decltype(chorale::target_logits) target_logits;
decltype(chorale::token_losses) token_losses;
decltype(chorale::cross_entropy_gradient) cross_entropy_gradient;
decltype(chorale::dropout) dropout;
decltype(chorale::add_residual) add_residual;
decltype(chorale::attention_forward) attention_forward;
decltype(chorale::attention_backward) attention_backward;
decltype(chorale::adamw) adamw;
decltype(chorale::sgd) sgd;
decltype(chorale::cast) cast;
decltype(chorale::number_rows) number_rows;
decltype(chorale::count_choices) count_choices;
decltype(chorale::routing_gradient) routing_gradient;
decltype(chorale::take_rows) take_rows;
decltype(chorale::add_slots) add_slots;
decltype(chorale::weight_gradients) weight_gradients;

// No host function has the same signature as the functions below; see DeviceKernels.
void route(const Tensor& logits, const RoutingRule& rule, std::span<const std::int32_t> forced, const Routing& routing,
           const Queue& queue);
void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Queue& queue);
void add_losses(const Tensor& losses, const Tensor& total, const Queue& queue);
void add_squares(std::span<const ScaledSlice> gradients, double* sum, const Queue& queue);
void reduce(Redop op, DType dtype, void* out, std::span<const void* const> sources, std::int64_t count, const Queue& queue);
void divide(DType dtype, void* out, std::int64_t count, std::int64_t by, const Queue& queue);

}  // namespace chorale::cuda
