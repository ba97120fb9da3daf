// Context parallelism by exchanging heads (DeepSpeed-Ulysses; Jacobs et al. 2023). Each rank computes some of the heads.
// Before attention, a rank receives its own heads for all tokens. In exchange, the rank sends the heads that belong to other
// ranks, for its own tokens. After attention, the outputs are sent back.
//
//             heads                        heads
//   tokens    0 1 2 3                    0    1    2    3
//   rank 0    ■ ■ ■ ■    all_to_all     ┌─┐  ┌─┐  ┌─┐  ┌─┐
//   rank 1    ■ ■ ■ ■   ───────────▶    │■│  │■│  │■│  │■│      each rank attends to complete sequences
//   rank 2    ■ ■ ■ ■   ◀───────────    │■│  │■│  │■│  │■│
//   rank 3    ■ ■ ■ ■                   └─┘  └─┘  └─┘  └─┘
//                                     rank 0  …        rank 3
//
// Attention gets the same input as in a run on one rank, so the results are bit-identical to that run. Let h be the width of
// all query heads, and let h_kv be the width of all key heads. With c ranks, a rank then sends (2h + 2h_kv)·b·(s/c)·(c−1)/c
// elements in the forward pass and as many in the backward pass. The rank keeps the exchanged tensors for the backward pass.
// In ulysses_ring.cpp, the ranks of a host exchange heads in the same way for the tokens of the host, and attention itself
// runs as a ring across hosts.
//
// If there are fewer key heads than ranks, several ranks share a key head. Each of these ranks gets a copy of the key head
// and some of its query heads. For example, 2 groups of 4 queries q with a key and value kv become 4 groups for 4 ranks:
//
//   q q q q kv  q q q q kv   ──▶   q q kv  q q kv  q q kv  q q kv
//
// Each rank then has only a partial gradient of its key head. A reduce-scatter adds the partial gradients and returns the
// sums to the ranks that have the tokens.
#include "parallel/context/context.hpp"
#include "parallel/context/sequence_order.hpp"
#include "src/math/heads.hpp"

namespace chorale {
namespace {

class Ulysses final : public AttentionScheme {
 public:
  Ulysses(const AxisParts& parts, const TokenCut& cut, std::unique_ptr<AttentionScheme> attention)
      : part_(parts),
        cut_(cut),
        within_(cut.within(parts.part_of(), parts.part())),
        places_(cut.joined(parts.part_of()).places(parts.part())),
        attention_(std::move(attention)) {}

  Tensor forward(const Tensor& qkv, const AttentionCall& call, Context& context) const override {
    Whole whole(*this, call, context);
    const Tensor out =
        attention().forward(to_heads(with_copies(qkv, call.shape, context), context), whole.call, whole.context);
    return to_tokens(out, call.shape.heads() * call.shape.width, context);
  }

  Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const override {
    Whole whole(*this, call, context);
    if (copies(call.shape) > 1) return backward_of_copies(dout, call, whole, context);
    const Tensor dqkv = attention().backward(to_heads(dout, context), whole.call, whole.context);
    return to_tokens(dqkv, call.shape.columns(), context);
  }

  Keeps keeps(std::int64_t rows, const AttentionShape& shape, const Context& context) const override {
    const Keeps whole = attention().keeps(rows / context.tokens.tokens * within_.sequence(), part_of(shape), context);
    return {.inside = whole.input + whole.inside + whole.output};  // the layer's own input and output are different tensors
  }

  QueryTokens query_tokens() const override { return {places_, part_.size()}; }

 private:
  const AttentionScheme& attention() const { return attention_ ? *attention_ : alone(); }

  // Returns the number of ranks that share a key head.
  std::int64_t copies(const AttentionShape& shape) const { return std::max<std::int64_t>(part_.size() / shape.groups, 1); }

  AttentionShape part_of(AttentionShape shape) const {
    shape.queries /= copies(shape);
    shape.groups = std::max<std::int64_t>(shape.groups / part_.size(), 1);
    shape.first_head += shape.heads() * part_.rank();
    return shape;
  }

  // Repeats keys and values so that every rank gets its own group.
  Tensor with_copies(const Tensor& qkv, const AttentionShape& shape, Context& context) const {
    const std::int64_t many = copies(shape), rows = qkv.dim(0), queries = shape.queries / many, heads = queries + 2;
    if (many == 1) return qkv;
    const Tensor y = context.typed({rows, part_.size() * heads * shape.width}, qkv.dtype(), Category::workspace);
    const auto temporary = [&](std::int64_t count) {
      return context.typed({rows * count, shape.width}, qkv.dtype(), Category::workspace);
    };
    const Tensor all_queries = temporary(shape.heads()), keys = temporary(2 * shape.groups);
    copy_heads(qkv, {shape.groups, shape.queries + 2, 0, shape.queries, shape.width}, all_queries, false, context.queue);
    copy_heads(y, {part_.size(), heads, 0, queries, shape.width}, all_queries, true, context.queue);
    copy_heads(qkv, {shape.groups, shape.queries + 2, shape.queries, 2, shape.width}, keys, false, context.queue);
    for (std::int64_t copy = 0; copy < many; ++copy)
      copy_heads(y, {shape.groups, many * heads, copy * heads + queries, 2, shape.width}, keys, true, context.queue);
    return y;
  }

  // The attention call for this rank's share of the heads, over all tokens of the part.
  struct Whole {
    Whole(const Ulysses& scheme, const AttentionCall& part, const Context& outer)
        : shape(scheme.part_of(part.shape)), dropout(part.dropout), context(outer), call{shape, dropout, part.keys} {
      const auto table = [](const Tensor& t) { return t ? static_cast<const std::int32_t*>(t.slice().data) : nullptr; };
      context.tokens = {.first_sample = outer.tokens.first_sample,
                        .sequence = outer.tokens.sequence,
                        .first_token = scheme.places_.front(),
                        .tokens = scheme.within_.sequence(),
                        .places = table(outer.query_places),
                        .positions = table(outer.query_positions)};
      dropout.tokens = context.tokens;
    }
    AttentionShape shape;
    Dropout dropout;
    Context context;
    AttentionCall call;
  };

  // Each rank writes its key gradients into a tensor that has key columns for all groups. The rank's gradients are at the
  // columns of the rank's group. So a reduce-scatter can add the gradients of all ranks.
  Tensor backward_of_copies(const Tensor& dout, const AttentionCall& call, Whole& whole, Context& context) const {
    require(part_.is_whole(), "only ranks of a whole axis can share key heads");
    const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
    const AttentionShape &shape = call.shape, &part = whole.shape;
    const std::int64_t all = qkv.dim(0), here = dout.dim(0), samples = samples_of(here, context);
    const auto workspace = [&](const Shape& of, DType type) { return context.typed(of, type, Category::workspace); };
    const DType partial = context.numerics.partial_type(context.compute);
    const Tensor sums = context.zeros({all, shape.key_columns()}, partial),
                 own = workspace({here, shape.key_columns()}, partial);
    KeyRows dkeys = keys_alone(sums, shape, samples, cut_.sequence());
    dkeys.offset += part_.rank() / copies(shape) * dkeys.group;
    const Tensor dqkv = workspace(qkv.shape(), context.compute);
    differentiate(whole_sequences(qkv, part, whole.dropout), to_heads(dout, context), out, lse, dqkv, dkeys, call.keys,
                  whole.context);

    const Tensor dq = workspace({all * part.heads(), shape.width}, context.compute);
    copy_heads(dqkv, {1, part.queries + 2, 0, part.queries, shape.width}, dq, false, context.queue);
    const Tensor queries = to_tokens(dq.view({all, part.heads() * shape.width}), shape.heads() * shape.width, context);
    part_.axis().reduce_scatter(by_rank(sums, cut_, samples, context), own, rows_of_ranks(cut_, samples));
    const Tensor result = context.tensor({here, shape.columns()});
    copy_heads(result, {shape.groups, shape.queries + 2, 0, shape.queries, shape.width}, queries.view({-1, shape.width}),
               true, context.queue);
    put_keys(context.settled(own, call.keys), shape, result, context.queue);
    return result;
  }

  // The numbers of rows that ranks send to each other. If `from_tokens` is true, each rank sends rows of its own tokens;
  // otherwise, each rank sends rows of its own heads.
  RowsBetween rows(std::int64_t samples, bool from_tokens) const {
    return part_.between([&](std::int64_t from, std::int64_t to) { return samples * cut_.tokens(from_tokens ? from : to); });
  }

  // [own tokens, all columns] → [all tokens of the part, own columns]. The columns are ordered by head.
  Tensor to_heads(const Tensor& x, Context& context) const {
    const std::int64_t ranks = part_.size(), columns = x.dim(1) / ranks, samples = samples_of(x.dim(0), context);
    const Tensor given = context.typed({ranks * x.dim(0), columns}, x.dtype(), Category::workspace);
    const Tensor taken = context.typed({samples * within_.sequence(), columns}, x.dtype(), Category::activations);
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      copy_heads(x, {1, ranks, rank, 1, columns}, given.narrow(rank * x.dim(0), x.dim(0)), false, context.queue);
    part_.axis().all_to_all(given, taken, rows(samples, true));
    return by_sequence(taken, within_, samples, context, Category::activations);
  }

  // [all tokens of the part, own columns] → [own tokens, `columns`]
  Tensor to_tokens(const Tensor& x, std::int64_t columns, Context& context) const {
    const std::int64_t ranks = part_.size(), here = context.targets.dim(0), samples = samples_of(here, context);
    const Tensor taken = context.typed({ranks * here, x.dim(1)}, x.dtype(), Category::workspace);
    part_.axis().all_to_all(by_rank(x, within_, samples, context), taken, rows(samples, false));
    const Tensor y = context.tensor({here, columns});
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      copy_heads(y, {1, ranks, rank, 1, x.dim(1)}, taken.narrow(rank * here, here), true, context.queue);
    return y;
  }

  AxisParts part_;                              // the ranks of a part exchange heads for tokens
  const TokenCut& cut_;                         // how all ranks of the axis divide a sequence
  TokenCut within_;                             // how the ranks of the part divide the part's tokens
  std::vector<std::int64_t> places_;            // positions of the part's tokens in the sequence
  std::unique_ptr<AttentionScheme> attention_;  // attention between ranks of different parts; null if there is only one part
};

}  // namespace

std::unique_ptr<AttentionScheme> ulysses_around(std::unique_ptr<AttentionScheme> attention, const AxisParts& parts,
                                                const TokenCut& cut) {
  return std::make_unique<Ulysses>(parts, cut, std::move(attention));
}

std::unique_ptr<AttentionScheme> ulysses_context(const AxisParts& whole, const TokenCut& cut) {
  return ulysses_around(nullptr, whole, cut);
}

}  // namespace chorale
