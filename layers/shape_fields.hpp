// The fields of a model's shape, in one list. The options, the presets, --load, the manifest of a checkpoint and the check
// that a checkpoint is of this model all walk this list. So a new setting of the model is one line here. If a field is
// missing, the structured bindings below do not compile.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <chorale/model.hpp>
#include "src/base/options.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale {

class ShapeField {
 public:
  enum class Models : std::uint8_t { all, llama, with_experts, with_expert_bias };  // in which the field has an effect

  ShapeField(const char* key_, const char* option_, const char* about_) : key(key_), option(option_), about(about_) {}
  ShapeField& range(double least, double most) {
    low = least;
    high = most;
    return *this;
  }
  ShapeField& changes(Effect what) { return with(effect, what); }
  ShapeField& labels() { return with(whole, Whole::shape); }  // part of the shape that labels name: "6×384"
  ShapeField& of(Models some) { return with(models, some); }
  ShapeField& may_change() { return with(changeable, true); }  // a resumed run may have another value
  ShapeField& not_in_presets() { return with(in_presets, false); }
  ShapeField& turned_off() { return with(negated, true); }            // the option turns off the field, a bool
  ShapeField& or_word(const char* word) { return with(none, word); }  // the option's word for 0, or for no value

  const char *key, *option, *about;  // key: in the manifest of a checkpoint
  double low = 0, high = -1;         // limits of a number; none if low > high
  Models models = Models::all;
  Effect effect = Effect::work;
  Whole whole = Whole::none;
  bool changeable = false, in_presets = true, negated = false;
  const char* none = nullptr;

 private:
  template <class Member>
  ShapeField& with(Member& member, std::type_identity_t<Member> value) {
    member = value;
    return *this;
  }
};

template <class Some, class Fields>
concept MaybeConst = std::same_as<std::remove_const_t<Some>, Fields>;

// Calls visit(field, value) for the fields of the shape itself. `equal_parts` is no setting of a model: with it, the planner
// cuts models into stages as the authors of published measurements did.
template <MaybeConst<ModelShape> Shape, class Visit>
void each_field(Shape& shape, const Visit& visit) {
  auto& [family, layers, heads, groups, width, ffn, sequence, vocabulary, dropout, epsilon, rotary_base, tied, of_experts,
         head, qk_norm, equal_parts] = shape;
  using F = ShapeField;
  using enum ShapeField::Models;
  visit(F("family", "family", "gpt2 (LayerNorm, GELU, learned positions) or llama (RMSNorm, SwiGLU, rotary)").labels(),
        family);
  visit(F("layers", "num-layers", "transformer blocks").range(1, 1e4).labels(), layers);
  visit(F("width", "hidden-size", "width of the residual stream").range(1, 1e6).labels(), width);
  visit(F("ffn", "ffn-hidden-size", "width of the MLP; 0: four times hidden-size").range(0, 1e7).labels(), ffn);
  visit(F("heads", "num-attention-heads", "attention heads").range(1, 1e5).labels(), heads);
  visit(F("groups", "num-query-groups", "key and value heads (GQA); 0: one per attention head").range(0, 1e5).labels(),
        groups);
  visit(F("sequence", "seq-length", "tokens per sequence").range(1, 1e7), sequence);
  visit(F("vocabulary", "vocab-size", "tokens in the vocabulary").range(1, 1e8).labels(), vocabulary);
  visit(
      F("rotary_base", "rotary-base", "base of rotary positions").range(1, 1e9).of(llama).changes(Effect::learning).labels(),
      rotary_base);
  visit(F("head", "kv-channels", "width of a head; 0: hidden-size / num-attention-heads").range(0, 1e5).labels(), head);
  visit(F("qk_norm", "qk-layernorm", "an RMSNorm of every query and key head, before the rotation, as in Qwen3").of(llama),
        qk_norm);
  visit(F("epsilon", "norm-epsilon", "added to the variance before a norm takes its root")
            .range(1e-12, 1)
            .changes(Effect::learning),
        epsilon);
  visit(F("dropout", "dropout", "probability of dropping an activation or attention weight")
            .range(0, 0.999)
            .changes(Effect::learning)
            .may_change()
            .not_in_presets(),
        dropout);
  visit(F("tied", "untie-embeddings", "the output head gets its own table, not the embedding's").turned_off().labels(),
        tied);
}

// The same for the fields of the experts.
template <MaybeConst<Experts> Some, class Visit>
void each_field(Some& experts, const Visit& visit) {
  auto& [count, chosen, ffn, shared_ffn, every, score, before_choice, scale, groups, chosen_groups, capacity, balance, z,
         bias, bias_rate, balancing, routing] = experts;
  using F = ShapeField;
  using enum ShapeField::Models;
  constexpr Effect learning = Effect::learning;
  visit(F("count", "num-experts", "experts of a block; 0: every MLP is dense").range(0, 1e5), count);
  visit(F("chosen", "moe-router-topk", "experts that a token chooses").range(1, 1e5).of(with_experts), chosen);
  visit(F("ffn", "moe-ffn-hidden-size", "width of an expert; 0: ffn-hidden-size").range(0, 1e7).of(with_experts), ffn);
  visit(F("shared_ffn", "moe-shared-expert-intermediate-size", "width of an expert that takes every token; 0: none")
            .range(0, 1e7)
            .of(with_experts),
        shared_ffn);
  visit(F("every", "expert-interval", "every n-th block has experts, the others a dense MLP").range(1, 1e4).of(with_experts),
        every);
  visit(F("score", "moe-router-score-function", "how logits become scores").of(with_experts).changes(learning), score);
  visit(F("before_choice", "moe-router-pre-softmax",
          "softmax over all experts instead of the chosen ones; their weights then add up to less than 1")
            .of(with_experts)
            .changes(learning),
        before_choice);
  visit(F("scale", "moe-router-topk-scaling-factor", "multiplies the weights of the chosen experts")
            .range(0, 1e6)
            .of(with_experts)
            .changes(learning),
        scale);
  visit(F("groups", "moe-router-num-groups", "groups of experts; a token chooses among its best groups")
            .range(1, 1e5)
            .of(with_experts),
        groups);
  visit(F("chosen_groups", "moe-router-group-topk", "groups that a token may choose from").range(1, 1e5).of(with_experts),
        chosen_groups);
  visit(F("capacity", "moe-expert-capacity-factor",
          "an expert takes at most this factor × topk × seq-length / experts tokens of a sequence")
            .range(1e-6, 1e6)
            .or_word("dropless")
            .of(with_experts),
        capacity);
  visit(F("balance", "moe-aux-loss-coeff", "coefficient of the balance loss")
            .range(0, 1e6)
            .of(with_experts)
            .changes(learning)
            .may_change(),
        balance);
  visit(F("z", "moe-z-loss-coeff", "coefficient of the router's z-loss")
            .range(0, 1e6)
            .of(with_experts)
            .changes(learning)
            .may_change(),
        z);
  visit(F("balancing", "moe-router-load-balancing-type",
          "shares of experts in the balance loss: of the sequence (seq) or of the previous step (global)")
            .of(with_experts)
            .changes(learning)
            .may_change(),
        balancing);
  visit(F("bias", "moe-router-enable-expert-bias",
          "choose experts by score + bias, and move the biases after each step toward equal loads")
            .of(with_experts)
            .changes(learning),
        bias);
  visit(F("bias_rate", "moe-router-bias-update-rate", "by how much a step moves a bias")
            .range(0, 1e6)
            .of(with_expert_bias)
            .changes(learning)
            .may_change(),
        bias_rate);
  visit(F("routing", "routing",
          "who chooses experts: the router, or a rule for measurements that knows only the token's position")
            .or_word(learned_routing)
            .of(with_experts)
            .may_change(),
        routing);
}

// The options of a shape with their values as text; "" if the field has no effect in this model. The order is always the
// same, so the settings of two shapes can be compared one by one.
std::vector<std::pair<ShapeField, std::string>> settings_of(const ModelShape& shape);

}  // namespace chorale
