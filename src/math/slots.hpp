// Copies rows to and from the experts, and sums the experts' outputs. routing.hpp makes `places` and the weights.
//
//   x [T,h] ── take_rows ──▶ rows [R,h], sorted by (expert, token) ── experts ──▶ rows [R,h] ── put_slots ──▶ slots [T,k·h]
//                                                                                                                 │
//   y [T,h] ◀────────────────────────────────────────────── add_slots ────────────────────────────────────────────┘
//
// The backward pass calls the same functions. take_rows of dy, with weights, gives the gradients of the experts' outputs.
// put_slots and add_slots, without weights, give dx. The sum over slots is separate from put_slots, because tensor-parallel
// ranks first sum their slots over ranks.
//
// 16-bit types compute in f32 and round once. y sums the slots in their order; a dot product uses the lanes of
// lane_sums.hpp. So a token's bits depend only on its own values. Memory-bound.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

// rows[places[t,j]] = weights[t,j]·x[t] for every choice that was not dropped. Without weights x may have any type.
void take_rows(const Tensor& x, const Tensor* weights, const Tensor& places, const Tensor& rows, const Queue& queue);

// slots[t,j] = rows[places[t,j]], or zeros where the choice was dropped. Any type, so it also serves partial sums.
void put_slots(const Tensor& rows, const Tensor& places, const Tensor& slots, const Queue& queue);

// y[t] = Σ_j weights[t,j]·slots[t,j] + added[t]. `weights` and `added` may be null; y may be `added`.
void add_slots(const Tensor& slots, const Tensor* weights, const Tensor* added, const Tensor& y, const Queue& queue);

// dweights[t,j] = dy[t]·slots[t,j], a dot product. Weights and their gradients are [T,k] in f32 (f64 for f64).
void weight_gradients(const Tensor& dy, const Tensor& slots, const Tensor& dweights, const Queue& queue);

}  // namespace chorale
