// The options of a model's shape.
#include <chorale/model.hpp>
#include "src/base/options.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale {

void ModelShape::declare(Options& o) {
  o.add("family", family, "gpt2 (LayerNorm, GELU, learned positions) or llama (RMSNorm, SwiGLU, rotary)");
  o.add("num-layers", layers, "transformer blocks").range(1, 1e4);
  o.add("hidden-size", width, "width of the residual stream").range(1, 1e6);
  o.add("ffn-hidden-size", ffn, "width of the MLP; 0: four times hidden-size").range(0, 1e7);
  o.add("num-attention-heads", heads, "attention heads").range(1, 1e5);
  o.add("num-query-groups", groups, "key and value heads (GQA); 0: one per attention head").range(0, 1e5);
  o.add("seq-length", sequence, "tokens per sequence").range(1, 1e7);
  o.add("vocab-size", vocabulary, "tokens in the vocabulary").range(1, 1e8);
  o.add("rotary-base", rotary_base, "base of rotary positions").range(1, 1e9).only_with("family", {"llama"});
  o.add("kv-channels", head, "width of a head; 0: hidden-size / num-attention-heads").range(0, 1e5);
  o.add("qk-layernorm", qk_norm, "an RMSNorm of every query and key head, before the rotation, as in Qwen3")
      .only_with("family", {"llama"});
  o.add("norm-epsilon", epsilon, "added to the variance before a norm takes its root").range(1e-12, 1);
  o.add("dropout", dropout, "probability of dropping an activation or attention weight").range(0, 0.999);
  o.add_no("untie-embeddings", tied, "the output head gets its own table, not the embedding's");
  experts.declare(o);
}

void Experts::declare(Options& o) {
  const auto dense = [this] { return count == 0 ? "num-experts is 0" : ""; };
  o.section("experts");
  o.add("num-experts", count, "experts of a block; 0: every MLP is dense").range(0, 1e5);
  o.only_where("a model with experts", dense, [&] {
    o.add("moe-router-topk", chosen, "experts that a token chooses").range(1, 1e5);
    o.add("moe-ffn-hidden-size", ffn, "width of an expert; 0: ffn-hidden-size").range(0, 1e7);
    o.add("moe-shared-expert-intermediate-size", shared_ffn, "width of an expert that takes every token; 0: none")
        .range(0, 1e7);
    o.add("expert-interval", every, "every n-th block has experts, the others a dense MLP").range(1, 1e4);
    o.add("moe-router-score-function", score, "how logits become scores");
    o.add("moe-router-pre-softmax", before_choice,
          "softmax over all experts instead of the chosen ones; their weights then add up to less than 1");
    o.add("moe-router-topk-scaling-factor", scale, "multiplies the weights of the chosen experts").range(0, 1e6);
    o.add("moe-router-num-groups", groups, "groups of experts; a token chooses among its best groups").range(1, 1e5);
    o.add("moe-router-group-topk", chosen_groups, "groups that a token may choose from").range(1, 1e5);
    o.add("moe-expert-capacity-factor", "dropless", capacity,
          "an expert takes at most this factor × topk × seq-length / experts tokens of a sequence")
        .range(1e-6, 1e6);
    o.add("moe-aux-loss-coeff", balance, "coefficient of the balance loss").range(0, 1e6);
    o.add("moe-z-loss-coeff", z, "coefficient of the router's z-loss").range(0, 1e6);
    o.add("moe-router-load-balancing-type", balancing,
          "shares of experts in the balance loss: of the sequence (seq) or of the previous step (global)");
    o.add("moe-router-enable-expert-bias", bias,
          "choose experts by score + bias, and move the biases after each step toward equal loads");
  });
  o.add("moe-router-bias-update-rate", bias_rate, "by how much a step moves a bias")
      .range(0, 1e6)
      .only_with("moe-router-enable-expert-bias", {"true"});
  o.add("routing", learned_routing, routing,
        "who chooses experts: the router, or a rule for measurements that knows only the token's position")
      .only_where("a model with experts", dense);
}

}  // namespace chorale
