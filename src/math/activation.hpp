// The elementwise activation functions of an MLP: GELU in its tanh form (Hendrycks & Gimpel 2016), as in GPT-2, and SwiGLU
// (Shazeer 2020), as in Llama.
//
//   gelu      y = x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³)))                        x, y [rows, n]
//   swiglu    y = gate·sigmoid(gate) · up     x [rows, n/block, 2, block]: adjacent gate and up blocks; y [rows, n]
//
// In gelu_backward, dx can be the same tensor as dy.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

void gelu_forward(const Tensor& x, const Tensor& y, const Queue& queue);
void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx, const Queue& queue);

void swiglu_forward(const Tensor& x, std::int64_t block, const Tensor& y, const Queue& queue);
void swiglu_backward(const Tensor& dy, const Tensor& x, std::int64_t block, const Tensor& dx, const Queue& queue);

}  // namespace chorale
