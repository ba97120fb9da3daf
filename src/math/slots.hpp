// Copies rows to and from the experts, and sums the experts' outputs. routing.hpp computes `places` and the weights.
//
//   x [T,h] ── take_rows ──▶ rows [R,h], sorted by (expert, token) ── experts ──▶ rows [R,h] ── put_slots ──▶ slots [T,k·h]
//                                                                                                                 │
//   y [T,h] ◀────────────────────────────────────────────── add_slots ────────────────────────────────────────────┘
//
// The backward pass calls the same functions. take_rows(), applied to dy with weights, returns the gradients of the experts'
// outputs. put_slots() and add_slots() without weights compute dx. The sum over slots is not part of put_slots(), because
// tensor-parallel ranks first sum their slots over ranks.
//
// 16-bit types are computed in f32 and rounded once. y sums the slots in slot order, and a dot product uses the lanes of
// lane_sums.hpp. A token's results therefore depend bit for bit only on its own values. The functions are memory-bound.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

// rows[places[t,j]] = weights[t,j]·x[t] for every choice that is not dropped. Without weights, x can have any type.
void take_rows(const Tensor& x, const Tensor* weights, const Tensor& places, const Tensor& rows, const Queue& queue);

// slots[t,j] = rows[places[t,j]], or zeros for a dropped choice. Rows can have any type, so partial sums are also supported.
void put_slots(const Tensor& rows, const Tensor& places, const Tensor& slots, const Queue& queue);

// y[t] = Σ_j weights[t,j]·slots[t,j] + added[t]. `weights` and `added` can be null; y can be the same tensor as `added`.
void add_slots(const Tensor& slots, const Tensor* weights, const Tensor* added, const Tensor& y, const Queue& queue);

// dweights[t,j] = dy[t]·slots[t,j], a dot product. Weights and their gradients have the shape [T,k] and the type f32, or f64
// if the rows are f64.
void weight_gradients(const Tensor& dy, const Tensor& slots, const Tensor& dweights, const Queue& queue);

}  // namespace chorale
