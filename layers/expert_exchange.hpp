// Communication between the ranks that split the experts of a layer. The expert layer calls these functions without knowing
// how they communicate. The default implementations assume that the rank has all experts; parallel/experts/experts.cpp
// overrides them.
//
//   home: the rank of the tokens                 here: the rank of the experts
//   tokens, places of their rows   ─ dispatch ─▶ rows sorted by (local expert, source rank, token) ─ experts ─┐
//   rows sorted by (expert, token) ◀─ combine ─────────────────────────────────────────────────────────────────┘
//
// dispatch copies each token's row once for each of its experts, and multiplies the copy by a weight if there are weights.
// Without weights, dispatch and combine only copy rows, so each of them is the backward pass of the other. Rows can have any
// type. The backward pass dispatches the output gradients with the weights, and combines the gradients of the experts'
// inputs.
//
// Exact numerics sums an expert's weight gradient leaf by leaf. A leaf is a fixed group of tokens of one sequence
// (Context::leaves), so ExpertRows::counts has the number of rows from each leaf. On the rank that has the experts, leaves
// are ordered by source rank.
#pragma once
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

struct Context;
struct Routing;    // src/math/routing.hpp
struct WayByHost;  // parallel/experts/experts_by_host.cpp

// The number of rows that each expert receives from each leaf. The rows are sorted by expert, then by leaf, then by token.
struct ExpertRows {
  std::int64_t experts = 0, leaves = 0;
  std::vector<std::int64_t> counts;           // [experts, leaves]
  std::vector<std::int64_t> between = {};     // [source rank, rank of the experts]: number of rows sent; empty if no rows
                                              // are sent
  std::shared_ptr<const WayByHost> way = {};  // null unless rows are dispatched host by host

  std::int64_t count(std::int64_t expert, std::int64_t leaf) const {
    return counts[static_cast<std::size_t>(expert * leaves + leaf)];
  }
  std::int64_t of(std::int64_t expert) const { return sum(expert, expert + 1); }
  std::int64_t all() const { return sum(0, experts); }
  std::int64_t sum(std::int64_t first_expert, std::int64_t end) const {
    return std::accumulate(counts.begin() + first_expert * leaves, counts.begin() + end * leaves, std::int64_t{0});
  }
};

class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;

  // `home`: the row counts of this rank's micro-batch, for all experts. Returns the row counts of this rank's experts, for
  // the micro-batches of all source ranks. `routing` describes this rank's micro-batch. In a plan (phantom tensors), the
  // counts of all ranks are derived from routing.planned.
  virtual ExpertRows here(const ExpertRows& home, const Routing& /*routing*/, Context&) const { return home; }
  // Copies the rows of x with take_rows (src/math/slots.hpp) and sends the copies to the ranks of their experts. Returns the
  // rows for this rank's experts. `weights` can be null. `home` holds the row counts on the tokens' rank, and `here` holds
  // the row counts on the experts' rank.
  virtual Tensor dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows& home,
                          const ExpertRows& here, Context& context) const;
  // Starts to send the experts' output rows back to the ranks of their tokens. The returned function waits for the rows of
  // this rank's tokens and returns these rows. Computation between the two calls overlaps the communication.
  virtual std::function<Tensor()> start_combine(const Tensor& rows, const ExpertRows& /*home*/, const ExpertRows& /*here*/,
                                                Context&) const {
    return [rows] { return rows; };
  }

  static const ExpertExchange& alone();
};

}  // namespace chorale
